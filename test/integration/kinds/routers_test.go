// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import "testing"

const (
	routeOfRelease   = "gatewayAPI: {name: web}"
	servicesOfRoute  = "services: [{variation: stable, serviceName: web-stable, port: 80}, {variation: canary, serviceName: web-canary, port: 80}]"
	webhookOfRouter  = `webhook: {url: "https://edge.example.com", secretRef: {name: edge, key: key}}`
	smallestTraefik  = "tokenSecretRef: {name: edge, key: token}, programs: [{name: edge-0}], ports: [{namespace: shop, serviceName: web, port: 80}]"
	passwordOfRouter = "passwordSecretRef: {name: edge, key: password}"
)

func TestABRelease_Routers(t *testing.T) {
	edge := func(of string) string { return "routers: [{name: edge, " + of + "}]" }
	const at = "spec.routers[0]"
	cases := map[string]specCase{
		"the mesh is accepted":                      {spec: "routers: [{name: mesh}]"},
		"a router without a route is accepted":      {spec: "routers: [{name: edge}]"},
		"a route beside the mesh is accepted":       {spec: "routers: [{name: mesh}, {name: edge, " + routeOfRelease + ", " + servicesOfRoute + "}]"},
		"a rule of a GRPCRoute is accepted":         {spec: edge("gatewayAPI: {kind: GRPCRoute, name: web, rule: main}, " + servicesOfRoute)},
		"two ports of one Service are accepted":     {spec: edge(routeOfRelease + ", services: [{variation: stable, serviceName: web, port: 80}, {variation: canary, serviceName: web, port: 81}]")},
		"a route of the mesh is refused":            {"routers: [{name: mesh, " + routeOfRelease + ", " + servicesOfRoute + "}]", []string{at + ".gatewayAPI"}, "the mesh has no route"},
		"a route without Services is refused":       {edge(routeOfRelease), []string{at + ".services"}, "give gatewayAPI and the Service of each variation"},
		"Services without a route are refused":      {edge(servicesOfRoute), []string{at + ".services"}, "give gatewayAPI and the Service of each variation"},
		"one Service of two variations is refused":  {edge(routeOfRelease + ", services: [{variation: stable, serviceName: web, port: 80}, {variation: canary, serviceName: web, port: 80}]"), []string{at + ".services"}, "two variations have the same Service and port"},
		"a variation without a Service is refused":  {edge(routeOfRelease + ", services: [{variation: stable, serviceName: web, port: 80}, {variation: other, serviceName: other, port: 80}]"), []string{"spec.routers"}, "give the Service of each variation"},
		"a kind without weights is refused":         {edge("gatewayAPI: {kind: TCPRoute, name: web}, " + servicesOfRoute), []string{at + ".gatewayAPI.kind"}, "Unsupported value"},
		"a route of another namespace is refused":   {edge("gatewayAPI: {name: pay/web}, " + servicesOfRoute), []string{at + ".gatewayAPI.name"}, "should match"},
		"a Service of another namespace is refused": {edge(routeOfRelease + ", services: [{variation: stable, serviceName: web, port: 80}, {variation: canary, serviceName: pay/web, port: 80}]"), []string{at + ".services[1].serviceName"}, "should match"},
		"a port beyond 65535 is refused":            {edge(routeOfRelease + ", services: [{variation: stable, serviceName: web, port: 80}, {variation: canary, serviceName: next, port: 70000}]"), []string{at + ".services[1].port"}, "should be less than or equal to 65535"},
	}
	runSpecCases(t, "ABRelease", smallestRelease, cases)
	demandEveryRuleTried(t, "ABRelease", "spec.routers[]", cases)
}

func TestABRelease_RoutersAreImmutable(t *testing.T) {
	create(t, object(t, "ABRelease", "routed", smallestRelease, "routers: [{name: edge, "+routeOfRelease+", "+servicesOfRoute+"}]"))
	runPatchCases(t, "ABRelease", "routed", dryPatch, map[string]patchCase{
		"the mesh in place of a route is refused": {`{"spec":{"routers":[{"name":"mesh"}]}}`, []string{"spec.routers"}, "routers are immutable"},
		"no router is refused":                    {`{"spec":{"routers":null}}`, []string{"spec.routers"}, "routers are immutable"},
		"other shares are accepted":               {patch: `{"spec":{"trafficSplit":{"percentages":{"stable":50,"canary":50}}}}`},
	})
}

func TestTrafficRouter_Fields(t *testing.T) {
	traefik := func(of string) string { return "type: Traefik\ntraefik: {" + of + "}" }
	program := func(of string) string {
		return traefik("tokenSecretRef: {name: edge, key: token}, programs: [{name: edge-0, " + of + "}], ports: [{namespace: shop, serviceName: web, port: 80}]")
	}
	const at = "spec.traefik.programs[0]"
	runSpecCases(t, "TrafficRouter", "type: GatewayAPI", map[string]specCase{
		"a type without a block is accepted":              {},
		"a settle time is accepted":                       {spec: "settle: 30s\nallowedNamespaces: {}"},
		"a settle time of a day is refused":               {"settle: 24h", []string{"spec.settle"}, "from 0s to 1h"},
		"a receiver is accepted":                          {spec: "type: Webhook\n" + webhookOfRouter},
		"a Webhook without a receiver is refused":         {"type: Webhook", []string{"spec"}, "give the block of the type"},
		"a receiver of type GatewayAPI is refused":        {webhookOfRouter, []string{"spec"}, "give the block of the type"},
		"a Traefik is accepted":                           {spec: traefik(smallestTraefik)},
		"a Traefik with an API is accepted":               {spec: program(`url: "http://10.0.0.1:8080", user: plumbline, ` + passwordOfRouter)},
		"a Traefik without a block is refused":            {"type: Traefik", []string{"spec"}, "give the block of the type"},
		"a user without a password is refused":            {program(`url: "http://10.0.0.1:8080", user: plumbline`), []string{at}, "give user and passwordSecretRef"},
		"a user without an API is refused":                {program("user: plumbline, " + passwordOfRouter), []string{at}, "give url"},
		"a password in the address is refused":            {program(`url: "http://a:b@10.0.0.1:8080"`), []string{at + ".url"}, "should match"},
		"a protocol that Traefik has not is refused":      {traefik("tokenSecretRef: {name: edge, key: token}, programs: [{name: edge-0}], ports: [{namespace: shop, serviceName: web, port: 80, protocol: HTTP3}]"), []string{"spec.traefik.ports[0].protocol"}, "Unsupported value"},
		"a port of a Service that comes twice is refused": {traefik("tokenSecretRef: {name: edge, key: token}, programs: [{name: edge-0}], ports: [{namespace: shop, serviceName: web, port: 80}, {namespace: shop, serviceName: web, port: 80}]"), []string{"spec.traefik.ports[1]"}, "Duplicate value"},
		"a type of a later version is refused":            {"type: Later", []string{"spec.type"}, "Unsupported value"},
	})
}
