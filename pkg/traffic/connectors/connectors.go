// SPDX-License-Identifier: Apache-2.0

package connectors

import "github.com/plumbline-dev/plumbline/pkg/traffic"

// Connector is one kind of router.
type Connector struct {
	// Name is the one that people know.
	Name string
	// Carries says which program or API divides requests, and Proof what its best knowledge means.
	Carries, Proof string
	traffic.Capabilities
	// Versions of the program that tests run.
	Versions string
}

// Mesh is the sidecars and gateways of the mesh.
var Mesh = Connector{
	Name:         "Mesh",
	Carries:      "Envoy, as sidecar or gateway, follows the discovery server",
	Proof:        "each proxy with the Service has acknowledged the route with the sequence",
	Capabilities: traffic.FullCapabilities(),
	Versions:     "Envoy 1.37, 1.40",
}

// Traefik is a Traefik that polls its dynamic configuration.
var Traefik = Connector{
	Name:    "Traefik",
	Carries: "Traefik v3, whose HTTP provider polls the configuration",
	Proof:   "the API of each Traefik shows the weights under the sequence; without API `Accepted`",
	Capabilities: traffic.Capabilities{
		HeaderMap: true, Override: true, Resolution: 1, Knowledge: traffic.Proven, Outcomes: true,
	},
	Versions: "Traefik 3.7",
}

// GatewayAPI is the weights of an HTTPRoute or a GRPCRoute.
var GatewayAPI = Connector{
	Name:         "Gateway API",
	Carries:      "the implementation of the parent Gateways follows an HTTPRoute or a GRPCRoute",
	Proof:        "each parent says Accepted and ResolvedRefs for the generation with the weights, and the settle time is over; whether a proxy applied it cannot be asked",
	Capabilities: traffic.Capabilities{Resolution: 1, Knowledge: traffic.Accepted},
	Versions:     "Gateway API v1.6",
}

// Webhook is a receiver of signed requests. A TrafficRouter says which of the capabilities its receiver has.
var Webhook = Connector{
	Name:    "Webhook",
	Carries: "a receiver of signed requests, which a TrafficRouter names",
	Proof:   "the receiver says so of the sequence; a TrafficRouter declares `Sticky`, `AnonymousVisitors`, `HeaderMap` and `Override`",
	Capabilities: traffic.Capabilities{
		Sticky: true, AnonymousVisitors: true, HeaderMap: true, Override: true, Resolution: 1, Knowledge: traffic.Proven,
	},
	Versions: "requests `v1`",
}

// AWSALB is the weights of target groups in a rule or a listener of an Application Load Balancer.
var AWSALB = Connector{
	Name:         "AWS ALB",
	Carries:      "an Application Load Balancer of AWS, by the weights of target groups in a rule or a listener",
	Proof:        "the API shows the weights, each target group with requests has a healthy target, and the settle time is over; whether the balancer applied them cannot be asked",
	Capabilities: traffic.Capabilities{Resolution: 10, Knowledge: traffic.Accepted, Outcomes: true},
	Versions:     "API 2015-12-01, by moto 5.2",
}

// All returns the connectors, in the order of the page.
func All() []Connector { return []Connector{Mesh, GatewayAPI, Traefik, AWSALB, Webhook} }
