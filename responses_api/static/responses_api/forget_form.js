// This page answers a form. Under another address, a reload shows what the form made and doesn't send it again.
(() => {
  "use strict";
  window.history.replaceState(null, "", document.currentScript.dataset.address);
})();
