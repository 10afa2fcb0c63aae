// SPDX-License-Identifier: Apache-2.0

// Package chart turns the chart of the repository into that of a release: its values name
// the release's images, its annotations list them, and Helm packs and pushes it.
package chart
