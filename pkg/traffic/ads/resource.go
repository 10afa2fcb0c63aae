// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"fmt"
	"strconv"
	"strings"
)

// Type of a resource. The order is that in which Envoy must get them.
type Type int

// The types.
const (
	Cluster Type = iota
	Endpoints
	Listener
	Route

	types = iota
)

// urls are the type URLs, as the protocol names them.
var urls = [types]string{
	"type.googleapis.com/envoy.config.cluster.v3.Cluster",
	"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
	"type.googleapis.com/envoy.config.listener.v3.Listener",
	"type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
}

// URL of the type.
func (t Type) URL() string { return urls[t] }

func (t Type) String() string { return [types]string{"Cluster", "Endpoints", "Listener", "Route"}[t] }

// TypeOf finds the type of a URL; false for one that is not served.
func TypeOf(url string) (Type, bool) {
	for t, u := range urls {
		if u == url {
			return Type(t), true
		}
	}
	return 0, false
}

// wildcard says that a client which names nothing gets all resources of the type.
func (t Type) wildcard() bool { return t == Cluster || t == Listener }

// fragile says that an Envoy which refuses one resource of a response has applied
// an arbitrary part of the others. Of clusters and listeners it applies all others.
func (t Type) fragile() bool { return t == Endpoints || t == Route }

// Version of a resource: its content, and how often somebody decided about it.
type Version struct {
	// Sequence only ever grows for a name. It is 0 for what no decision stands behind.
	Sequence uint64
	// Hash is that of the content; equal on all replicas.
	Hash string
}

// String is the form that goes to Envoy and comes back.
func (v Version) String() string { return strconv.FormatUint(v.Sequence, 10) + "." + v.Hash }

// maxHash is longer than any of ours, in bytes.
const maxHash = 64

// ParseVersion reads what an Envoy reports. What is none of ours is an error.
func ParseVersion(text string) (Version, error) {
	sequence, hash, found := strings.Cut(text, ".")
	n, err := strconv.ParseUint(sequence, 10, 64)
	if !found || err != nil || hash == "" || len(hash) > maxHash || n > 0 && sequence[0] == '0' {
		return Version{}, fmt.Errorf("reading version %q: want <sequence>.<hash>", text)
	}
	return Version{Sequence: n, Hash: hash}, nil
}

// Resource is one version of one xDS resource. Nobody changes it, and all streams
// share it.
type Resource struct {
	Type    Type
	Name    string
	Version Version
	// Body is the encoded google.protobuf.Any of it.
	Body []byte
	// Clusters are those that a route names.
	Clusters []string
	// Inline says of a cluster that it needs no endpoints from us.
	Inline bool
}

// Key names a resource whatever its version.
type Key struct {
	Type Type
	Name string
}
