// SPDX-License-Identifier: Apache-2.0

// Package discoveryserver runs a discovery server within a test: it serves Envoys with a certificate of
// its own, and leads, which means that it decides about ABReleases.
package discoveryserver
