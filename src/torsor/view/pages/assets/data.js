// The data of the page: one JSON text, and numbers as bytes in base64, to which it refers.

const TYPES = { f4: Float32Array, u2: Uint16Array, u4: Uint32Array };

function bytesOf(text) {
    const raw = atob(text.trim()), bytes = new Uint8Array(raw.length);
    for (let k = 0; k < raw.length; k++) bytes[k] = raw.charCodeAt(k);
    return bytes.buffer;
}

/** The value with each reference {type, at, shape} replaced by a typed array; its shape is the property ``shape``. */
function resolved(value, buffer) {
    if (Array.isArray(value)) return value.map((each) => resolved(each, buffer));
    if (value === null || typeof value !== "object") return value;
    if (value.type in TYPES && Array.isArray(value.shape)) {
        const count = value.shape.reduce((a, b) => a * b, 1), array = new TYPES[value.type](buffer, value.at, count);
        array.shape = value.shape;
        return array;
    }
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, resolved(each, buffer)]));
}

function readData(document) {
    const text = (id) => document.getElementById(id).textContent;
    return resolved(JSON.parse(text("content")), bytesOf(text("numbers")));
}
