// Runs before the program of the viewer's page. Where the browser draws without a GPU (SwiftShader, llvmpipe),
// each sample of each pixel costs time of a processor: there, edges are not smoothed. With a GPU nothing changes.
(() => {
  "use strict";
  const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;
  const LOOK = 500; // ms between two looks at the background

  function renderer() {
    const gl = document.createElement("canvas").getContext("webgl2");
    const names = gl && gl.getExtension("WEBGL_debug_renderer_info");
    const name = names ? gl.getParameter(names.UNMASKED_RENDERER_WEBGL) : "";
    const loss = gl && gl.getExtension("WEBGL_lose_context");
    if (loss) loss.loseContext(); // a page may have few contexts
    return String(name);
  }

  if (SOFTWARE.test(renderer())) {
    const plain = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, options) {
      return plain.call(this, kind, /^webgl/.test(kind) ? { ...options, antialias: false } : options);
    };
  }

  // The page draws a background image over all pixels, also when there is none: each pixel is computed and discarded.
  setInterval(() => {
    const material = window.__viserMutable && window.__viserMutable.backgroundMaterial;
    const enabled = material && material.uniforms && material.uniforms.enabled;
    if (enabled) material.visible = enabled.value;
  }, LOOK);
})();
