"use strict";

// Without this script, or a clipboard, a click on the secret selects it.
if (navigator.clipboard) {
  for (const button of document.querySelectorAll("[data-mcp-copies]")) {
    const source = document.getElementById(button.dataset.mcpCopies);
    const status = document.querySelector("[data-mcp-status]");
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.textContent);
        status.textContent = button.dataset.mcpCopied;
      } catch {
        getSelection().selectAllChildren(source);
      }
    });
  }
}
