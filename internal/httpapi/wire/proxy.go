// SPDX-License-Identifier: Apache-2.0

package wire

import "time"

// ProxyStage is how far a proxy is with its resources.
type ProxyStage string

// Proxy is a proxy that is connected to a replica of the discovery server, or a pod with a proxy that no replica
// knows.
type Proxy struct {
	Namespace string           `json:"namespace"`
	Pod       string           `json:"pod"`
	Stage     Word[ProxyStage] `json:"stage" doc:"The worst of the proxy and of its resources."`
	PodUID    string           `json:"podUid"`

	ServiceAccount string    `json:"serviceAccount"`
	Node           string    `json:"node,omitempty"`
	Envoy          string    `json:"envoy,omitempty" doc:"The version of Envoy, as the proxy reports it."`
	Replica        string    `json:"replica,omitempty" doc:"The pod of the discovery server that the proxy is connected to."`
	ConnectedSince time.Time `json:"connectedSince,omitzero"`
	TokenExpires   time.Time `json:"tokenExpires,omitzero"`
	Blocked        bool      `json:"blocked,omitempty"`
	Waiting        bool      `json:"waiting,omitempty"`
	// Stages are how many of its resources are in each stage.
	Stages   map[string]int `json:"stages"`
	Unserved []string       `json:"unserved,omitempty"`
}

// ProxyOf shows a proxy. told is the report about it, whose fields have the same names.
func ProxyOf[Told any](told *Told) Proxy {
	var out Proxy
	show(&out, told)
	stages := map[string]int{}
	for stage, count := range out.Stages {
		stages[string(Spell(ProxyStage(stage)))] = count
	}
	out.Stages = stages
	return out
}
