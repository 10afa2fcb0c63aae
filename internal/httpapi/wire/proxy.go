// SPDX-License-Identifier: Apache-2.0

package wire

import "time"

// Proxy is a proxy that is connected to a replica of the discovery server.
type Proxy struct {
	Namespace      string    `json:"namespace"`
	Pod            string    `json:"pod"`
	PodUID         string    `json:"podUid"`
	ServiceAccount string    `json:"serviceAccount"`
	Node           string    `json:"node,omitempty"`
	Envoy          string    `json:"envoy,omitempty"`
	Replica        string    `json:"replica"`
	ConnectedSince time.Time `json:"connectedSince,omitzero"`
	TokenExpires   time.Time `json:"tokenExpires,omitzero"`
	Blocked        bool      `json:"blocked,omitempty"`
	Waiting        bool      `json:"waiting,omitempty"`
	// Stages are how many of its resources are in each stage.
	Stages   map[string]int `json:"stages"`
	Unserved []string       `json:"unserved,omitempty"`
}

// ProxyOf shows a proxy. told is the document of the discovery server about it, whose fields have the
// same names.
func ProxyOf[Told any](replica string, told *Told) Proxy {
	out := Proxy{Replica: replica}
	show(&out, told)
	return out
}
