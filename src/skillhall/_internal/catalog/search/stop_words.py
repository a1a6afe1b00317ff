"""Stop words in eight languages: words that say nothing about a query's topic.

Words that are common in the skills themselves are found by counting. Stop words are left out even
where they are rare, as in a German query for English skills. Some of them mean something else in
English: they are left out only if the query has other stop words of that language.
"""
# ruff: noqa: RUF001 - Russian letters look like Latin ones

from __future__ import annotations

_ENGLISH = """
a about after all also am an and any are as at be because been before being but by can cannot could
did do does doing done down each few for from further come get gets getting give go going got had
has have having he hello help her here hey hi him his how however i if in into is it its just know
let like lot made make makes making many may maybe me might more most much must my need needs no not
now of off ok okay on once one only or other our out over own please really same see she should so
some something still such sure take tell than thank thanks that the their them then there these they
thing things this those through to too try trying under until up us use used using very via want
wants was way we well were what when where whether which while who why will with within without
would yes yet you your yours
"""
_GERMAN = """
aber alle allem allen aller als also am an auch auf aus bei beim bin bis bitte brauche da dabei
damit dann darf das dass dein deine dem den denn der des dich die dies diese diesem diesen dieser
dieses dir doch dort du durch ein eine einem einen einer eines er es etwas für gibt hab habe
haben hallo
hat hier ich ihr ihre ihrem ihren im in ist ja jede jeden jeder jetzt kann kannst kein keine könnte
machen man mehr mein meine meinem meinen meiner mich mir mit mochte möchte muss nach nicht noch nun
nur ob oder ohne schon sehr sein seine sich sie sind so soll sollte über um und uns unser unsere
unter vom von vor war was weil welche wenn wie will wir wird wo wurde würde zu zum zur
"""
_FRENCH = """
ai alors au aux avec avoir besoin bonjour ce cela ces cet cette ceux chaque comme comment dans de
des deux dois donc du elle elles en est et être eu faire faut fait il ils je la le les leur leurs
lui ma mais me merci mes moi mon même ne nos notre nous on ont ou où par pas peut peux plus pour
pourrais qu quand que quel quelle qui sa sans se ses si soit son sont sur ta te tes toi ton tous
tout toute toutes très tu un une veux voici vos votre vous
"""
_SPANISH = """
al algo ante antes aquí así aunque bien cada como con cuando cual cuál de del desde donde dónde
el ella ellas ellos en entre era es esa ese eso esta está están estas este esto estos favor fue ha
hacer hasta hay hola la las le les lo los más me mi mis mucho muy necesito ni no nos nosotros o otra
otro para pero poder por porque puede puedes puedo que qué quien quiero se sea ser si sí sin sobre
son su sus también tan te tengo ti tiene todo todos tu tus un una uno unos y ya yo
"""
_PORTUGUESE = """
ao aos aquela aquele as até bom com como da das de dela dele depois do dos e ela ele eles em entre
era essa esse esta está este estou eu faz fazer foi há isso isto já lhe mais mas me meu meus minha
muito na não nas nem no nos nós nossa nosso num numa o obrigado olá onde os ou para pela pelo pode
por porque posso preciso qual quando que quem quero são se sem ser seu sua também te tem tenho ter
tudo um uma umas uns você vocês vou
"""
_ITALIAN = """
agli ai al alla alle anche che chi ci ciao come con cosa cui da dal dalla dei del della delle di
dove è ed essere fare gli grazie ha ho il io la le lei lo loro lui ma mi mia mie mio nei nel nella
non o per perché più può quale quando questa questo qui se senza si sono su sua suo sul tra tu tutti
tutto un una uno vorrei
"""
_DUTCH = """
aan al als bij dan dat de deze die dit een en er graag haar hebben heeft het hij hoe ik in is je
jij kan kun maar me meer met mij mijn moet na naar niet nog nu of om ook op over te tot uit van voor
want was wat we wel wij wil worden zal ze zich zij zijn zo
"""
_RUSSIAN = """
а без бы был была были было быть в вам вас весь во вот все всё вы где да даже для до его ее её если
есть ещё же за здесь и из или им их к как какой когда которые который кто ли мне могу можно мой мы
на надо нам нас не него нет ни но ну нужно о об он она они от по пожалуйста при с сделать со так
также там то тоже только ты у уже хочу чем что чтобы это этот эту я
"""
# Abbreviations and words of English that are stop words elsewhere: artificial intelligence,
# continuous integration, a list of todos, a comment in code.
_AMBIGUOUS = """
ai bin ci comment die dies dos dove era es eu fare hat io man meme mes mit os sans sea sin son todo
todos van war
"""
AMBIGUOUS_WORDS = frozenset(_AMBIGUOUS.split())
ENGLISH_STOP_WORDS = frozenset(_ENGLISH.split())
OTHER_STOP_WORDS = tuple(
    frozenset(language.split())
    for language in (_GERMAN, _FRENCH, _SPANISH, _PORTUGUESE, _ITALIAN, _DUTCH, _RUSSIAN)
)
