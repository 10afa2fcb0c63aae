// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

// Each golden set of the translation is sent to an Envoy of its own, which acknowledges
// every resource of it.
func TestEveryGoldenSetIsAcknowledged(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		files, err := filepath.Glob("../../../pkg/traffic/envoyxds/testdata/*.json")
		if err != nil || len(files) < 10 {
			t.Fatalf("there are %d golden files, %v", len(files), err)
		}
		for _, file := range files {
			set := strings.TrimSuffix(filepath.Base(file), ".json")
			if alone[set] {
				continue
			}
			t.Run(set, func(t *testing.T) {
				resources := golden(t, file)
				m := newMesh(t)
				m.view = ads.NewView(resources...)
				m.group.Publish(m.view)
				m.proxy("pod")
				for _, r := range resources {
					m.acknowledged("pod", r)
				}
			})
		}
	})
}

// alone are golden files of what is no set: the bootstrap's own, and what stands for
// what is missing. Other tests have them.
var alone = map[string]bool{"outbound": true, "missing": true}

// golden are the resources of a file, as they would be sent.
func golden(t *testing.T, file string) (resources []*ads.Resource) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Type, Name, Version string
		Clusters            []string
		Body                json.RawMessage
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		version, err := ads.ParseVersion(entry.Version)
		if err != nil {
			t.Fatal(err)
		}
		kind, message := kindOf(t, entry.Type)
		if err := protojson.Unmarshal(entry.Body, message); err != nil {
			t.Fatal(err)
		}
		elsewhere(t, message)
		body, err := packed(message)
		if err != nil {
			t.Fatal(err)
		}
		resources = append(resources, &ads.Resource{Type: kind, Name: entry.Name, Version: version, Body: body, Clusters: entry.Clusters})
	}
	return resources
}

func kindOf(t *testing.T, name string) (ads.Type, proto.Message) {
	t.Helper()
	switch name {
	case "Cluster":
		return ads.Cluster, &clusterv3.Cluster{}
	case "Endpoints":
		return ads.Endpoints, &endpointv3.ClusterLoadAssignment{}
	case "Listener":
		return ads.Listener, &listenerv3.Listener{}
	case "Route":
		return ads.Route, &routev3.RouteConfiguration{}
	}
	t.Fatalf("there is no type %q", name)
	return 0, nil
}

// elsewhere binds a listener to a port that is free on this machine.
func elsewhere(t *testing.T, m proto.Message) {
	t.Helper()
	l, is := m.(*listenerv3.Listener)
	if !is || l.BindToPort != nil && !l.BindToPort.Value {
		return
	}
	_, port, err := net.SplitHostPort(freeport.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	l.GetAddress().GetSocketAddress().PortSpecifier = &corev3.SocketAddress_PortValue{PortValue: uint32(n)}
	for _, more := range l.AdditionalAddresses {
		more.GetAddress().GetSocketAddress().PortSpecifier = &corev3.SocketAddress_PortValue{PortValue: uint32(n)}
	}
}

func packed(m proto.Message) ([]byte, error) {
	body, err := anypb.New(m)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(body)
}
