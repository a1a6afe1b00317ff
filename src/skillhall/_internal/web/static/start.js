// Runs before the page is drawn, so that what only scripts need does not move it later.
document.documentElement.classList.add("has-js");
