// SPDX-License-Identifier: Apache-2.0

// Package provider is a traffic.Router of Traefiks that poll their dynamic configuration.
//
//	Traefiks ──Service──▶ [Port] of a replica ──relay──▶ [Port] of the one that leads ──▶ [Provider] of a TrafficRouter
//
// Adapter. The package serves the configuration by the network, and asks the API and the metrics of each Traefik. The
// caller starts [Provider.Run] in the process that has the leases of the releases.
//
// Until [Provider.Open] the handler answers 503, and a Traefik keeps the configuration that it has. So a leader that
// does not know all splits yet takes none away.
package provider
