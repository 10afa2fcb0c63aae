// SPDX-License-Identifier: Apache-2.0

// Command release makes a release of Plumbline: images for two architectures, the chart,
// the plugin for five platforms, bills of materials, licenses, checksums and provenance.
// docs/guides/release.md describes all of it.
//
// It is a module of its own, so that the product needs none of its dependencies.
package main
