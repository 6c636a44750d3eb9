// Sets the mathematics of a page: pymdownx.arithmatex marks formulas, KaTeX draws them.
for (const element of document.querySelectorAll(".arithmatex")) {
  const source = element.textContent.trim()
  katex.render(source.slice(2, -2), element, { displayMode: source.startsWith("\\["), throwOnError: true })
}
