// SPDX-License-Identifier: Apache-2.0

// Package plot turns series of values into the geometry of a chart: axes, paths, bands and labels, as texts that a
// template writes into SVG. It is pure, and a reader needs no color: each line has a shape of its marks, a dash that
// follows from its place, and its name at its end.
package plot
