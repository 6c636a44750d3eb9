// Runs before the program of the viewer's page. Where the browser draws without a GPU (SwiftShader, llvmpipe),
// each sample of each pixel costs time of a processor: there, edges are not smoothed and bodies cast no shadows. With a
// GPU nothing changes.
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

  /** Leave one of the lights that viser makes of the sun, without a shadow, and no floor, which shows shadows alone. */
  function withoutShadows(scene) {
    const suns = [];
    scene.traverse((each) => {
      if (each.isDirectionalLight && each.castShadow) suns.push(each);
      if (each.material && (each.material.type === "ShadowMaterial" || each.material.opacity === 0)) each.visible = false;
    });
    suns.forEach((sun, k) => {
      sun.castShadow = false;
      sun.visible = k === 0;
      sun.intensity *= suns.length;
    });
  }

  const software = SOFTWARE.test(renderer());
  if (software) {
    const plain = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, options) {
      return plain.call(this, kind, /^webgl/.test(kind) ? { ...options, antialias: false } : options);
    };
  }

  // The page draws a background image over all pixels, also when there is none: each pixel is computed and discarded.
  setInterval(() => {
    const viewer = window.__viserMutable, material = viewer && viewer.backgroundMaterial;
    if (software && viewer && viewer.scene) withoutShadows(viewer.scene);
    const enabled = material && material.uniforms && material.uniforms.enabled;
    if (enabled) material.visible = enabled.value;
  }, LOOK);
})();
