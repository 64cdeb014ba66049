// Puts a button on every element with data-copy that copies the text of its <pre> or <code>.
(() => {
  "use strict";

  const copy = async (source) => {
    const text = source.textContent.replace(/\n$/, "");
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Not a secure context, or not allowed: the way that browsers had before.
      const selection = window.getSelection();
      selection.selectAllChildren(source);
      if (!document.execCommand("copy")) return false;
      selection.removeAllRanges();
    }
    return true;
  };

  for (const place of document.querySelectorAll("[data-copy]")) {
    const source = place.querySelector("pre, code");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      button.textContent = (await copy(source)) ? "Copied" : "Selected";
      window.setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    place.append(button);
  }
})();
