// Flexible links as they bend: rods between points that move with the coordinates of their modes.

/** A point of a beam at positions q, in the axes of the link that it is clamped to. */
function bent(beam, point, q) {
    const { points, shapes, second, at } = beam, n = at.length;
    return [0, 1, 2].map((axis) => {
        const row = 3 * point + axis;
        let sum = points[row];
        for (let k = 0; k < n; k++) {
            let slope = shapes[row * n + k];
            for (let l = 0; l < n; l++) slope += 0.5 * second[(row * n + k) * n + l] * q[at[l]];
            sum += slope * q[at[k]];
        }
        return sum;
    });
}

/** Write the matrices of the rods of a beam, z along them, behind those of the links, which are there already. */
function placeBeam(beam, q, matrices) {
    const link = Actor.at(beam.link);
    for (let k = 0; k < beam.pairs.length / 2; k++) {
        const [a, b] = [beam.pairs[2 * k], beam.pairs[2 * k + 1]].map((each) => moved(matrices, bent(beam, each, q), link));
        const z = unit(subtract(b, a)), [x, y] = across(z), start = Actor.at(beam.place + k);
        [x, y, z, scaled(add(a, b), 0.5)].forEach((column, c) => {
            for (let row = 0; row < 3; row++) matrices[start + 4 * c + row] = column[row];
            matrices[start + 4 * c + 3] = c === 3 ? 1 : 0;
        });
    }
}
