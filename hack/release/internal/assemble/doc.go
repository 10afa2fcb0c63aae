// SPDX-License-Identifier: Apache-2.0

// Package assemble makes the folder of a release, and pushes its images and its chart.
//
// The folder gets its name when all of it is there, and the chart, which names the images,
// is pushed last: an interrupted release leaves nothing that looks complete.
package assemble
