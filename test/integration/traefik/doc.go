// SPDX-License-Identifier: Apache-2.0

// Package traefik tests the connector of Traefik with a real Traefik.
//
// The tests have the build tag integration. The environment's TRAEFIK is the path of the program.
package traefik
