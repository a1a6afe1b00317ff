"""Services and state that all pages share."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from skillhall._internal.agents.agent_skills import AgentSkills
from skillhall._internal.agents.chat.conversations import Conversations
from skillhall._internal.agents.collection_skills import CollectionSkills
from skillhall._internal.cache import PendingStore, SizedCache
from skillhall._internal.embeddings.embedding_job import BackgroundEmbedding
from skillhall._internal.http.credentials import Credentials
from skillhall._internal.http.thread_pool import WorkerPools
from skillhall._internal.policy.access.actor import SYSTEM_ACTOR
from skillhall._internal.policy.effects import JudgedFinding
from skillhall._internal.prompt_server.service import PromptService
from skillhall._internal.settings import Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.pending_imports import PendingImports
from skillhall._internal.skill_store.trust.server_trust import ServerTrust
from skillhall._internal.web.markdown_html import MarkdownRenderer
from skillhall._internal.web.playground.session_agents import SessionAgents
from skillhall._internal.wiring.database import RuntimeSettings, ServerAudit
from skillhall._internal.workspace.importer import ImportChoices
from skillhall._internal.workspace.workspace import LazyWorkspace

if TYPE_CHECKING:
    from skillhall._internal.wiring.database import Accounts  # imports the database driver

_MAX_CACHED_FINDINGS = 50_000


@dataclass
class Site:
    """Services behind the pages."""

    collection: Collection
    prompt_service: PromptService
    settings: Settings
    pools: WorkerPools
    credentials: Credentials
    wait_for_shutdown: Callable[[], Awaitable[None]]  # returns when the server shuts down
    workspace: LazyWorkspace | None = None
    accounts: "Accounts | None" = None  # users and tokens
    audit: ServerAudit | None = None
    trust: ServerTrust | None = None  # revocations and inventories
    check_database: Callable[[], str] | None = None  # returns why it is unavailable, or ""
    embedding: BackgroundEmbedding | None = None
    runtime: RuntimeSettings | None = None
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        self.markdown = MarkdownRenderer()
        self.pending_imports = PendingImports(
            self.collection.changes(SYSTEM_ACTOR),
            self.collection.system_ids,
            present_skills=self.collection.present_skills,
        )
        # Findings about the texts of blocks, by the digests of the texts.
        self.block_findings = SizedCache[tuple[JudgedFinding, ...]](
            _MAX_CACHED_FINDINGS, lambda findings: 1 + len(findings)
        )
        self.pending_session_imports: PendingStore[ImportChoices] = PendingStore()
        self.conversations = Conversations()
        self.default_agent_skills = CollectionSkills(self.collection)  # every skill
        self.agent_skills: dict[str, AgentSkills] = {}  # of configured agents, by agent id
        self.session_agents = SessionAgents(self.collection)
