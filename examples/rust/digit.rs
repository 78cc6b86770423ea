// SPDX-License-Identifier: Apache-2.0
//! Reads a handwritten digit, 28x28 floats, and prints which one it is.
mod bmrt;

use std::io::Read;

fn main() -> Result<(), String> {
    let model = std::env::args().nth(1).ok_or("usage: digit MODEL <FLOATS")?;
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let pixels: Vec<f32> = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();

    let mut net = bmrt::Net::open(&model)?;
    let mut scores = [0.0; 10];
    net.run(&pixels, &mut scores)?;
    let best = (0..10).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
    println!("a {best}");

    // An error returns its message, and the net remains usable.
    println!("{}", net.run(&pixels[1..], &mut scores).unwrap_err());
    Ok(())
}
