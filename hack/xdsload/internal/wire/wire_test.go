// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/wire"
)

func TestARequestReadsAsTheMessageOfTheProtocol(t *testing.T) {
	r := wire.Request{
		URL: "type", Subscribe: []string{"a", "b"}, Unsubscribe: []string{"c"}, Initial: map[string]string{"d": "1"},
		Nonce: "7", Refused: "no", Node: &wire.Node{ID: "web-0", Cluster: "shop"},
	}
	got := &discovery.DeltaDiscoveryRequest{}
	if err := proto.Unmarshal(r.Encode(), got); err != nil {
		t.Fatal(err)
	}
	if n := proto.Size(got.GetNode()); n < 55_000 || n > 65_000 {
		t.Errorf("the node has %d bytes, an Envoy's has 61,000", n)
	}
	if v := got.GetNode().GetUserAgentBuildVersion().GetVersion(); v.GetMajorNumber() != 1 || v.GetMinorNumber() != 40 {
		t.Errorf("the version is %v", v)
	}
	got.Node = &corev3.Node{Id: got.GetNode().GetId(), Cluster: got.GetNode().GetCluster()}
	want := &discovery.DeltaDiscoveryRequest{
		Node: &corev3.Node{Id: "web-0", Cluster: "shop"}, TypeUrl: "type",
		ResourceNamesSubscribe: []string{"a", "b"}, ResourceNamesUnsubscribe: []string{"c"},
		InitialResourceVersions: map[string]string{"d": "1"}, ResponseNonce: "7",
		ErrorDetail: &status.Status{Code: 13, Message: "no"},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestNamesAndVersionsOfAResponseAreRead(t *testing.T) {
	data, err := proto.Marshal(&discovery.DeltaDiscoveryResponse{
		TypeUrl: "type", Nonce: "7", RemovedResources: []string{"gone"}, SystemVersionInfo: "x",
		Resources: []*discovery.Resource{{Name: "a", Version: "1", Resource: &anypb.Any{Value: []byte("body")}}, {Name: "b", Version: "2"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.Decode(data, &wire.Names{})
	if err != nil {
		t.Fatal(err)
	}
	want := wire.Response{URL: "type", Nonce: "7", Removed: []string{"gone"}, Resources: []wire.Resource{{Name: "a", Version: "1"}, {Name: "b", Version: "2"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := wire.Decode(data[:len(data)-1], &wire.Names{}); err == nil {
		t.Error("half a response was read")
	}
}
