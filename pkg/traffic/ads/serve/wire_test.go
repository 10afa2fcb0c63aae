// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// asProtobuf is what the library makes of the same bytes.
func asProtobuf(data []byte) (*request, error) {
	var m discovery.DeltaDiscoveryRequest
	if err := proto.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	v := m.GetNode().GetUserAgentBuildVersion().GetVersion()
	r := &request{
		url:  m.GetTypeUrl(),
		node: node{truncate([]byte(m.GetNode().GetId())), truncate([]byte(m.GetNode().GetCluster())), truncate([]byte(m.GetNode().GetUserAgentName())), [3]uint64{uint64(v.GetMajorNumber()), uint64(v.GetMinorNumber()), uint64(v.GetPatch())}},
		Request: ads.Request{
			Subscribe: m.GetResourceNamesSubscribe(), Unsubscribe: m.GetResourceNamesUnsubscribe(), Initial: m.GetInitialResourceVersions(),
			Nonce: m.GetResponseNonce(), Refused: m.GetErrorDetail() != nil, Message: truncate([]byte(m.GetErrorDetail().GetMessage())),
		},
	}
	return r, nil
}

var asRequests = []cmp.Option{cmp.AllowUnexported(request{}, node{}), cmpopts.EquateEmpty()}

// example is what an Envoy begins a stream with, less most of its extensions.
func example() *discovery.DeltaDiscoveryRequest {
	return &discovery.DeltaDiscoveryRequest{
		Node: &corev3.Node{
			Id: "shop/web-0", Cluster: "web", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewNumberValue(1)}},
			UserAgentName: "envoy", UserAgentVersionType: &corev3.Node_UserAgentBuildVersion{UserAgentBuildVersion: &corev3.BuildVersion{
				Version: &typev3.SemanticVersion{MajorNumber: 1, MinorNumber: 40, Patch: 2},
			}},
			Extensions: []*corev3.Extension{{Name: "envoy.filters.http.router", Category: "envoy.filters.http"}},
		},
		TypeUrl: ads.Endpoints.URL(), ResourceNamesSubscribe: []string{"a", "b"}, ResourceNamesUnsubscribe: []string{"c"},
		InitialResourceVersions: map[string]string{"a": "1.x", "b": "0.y"}, ResponseNonce: "17",
		ErrorDetail: &rpc.Status{Code: 13, Message: "no such thing"},
	}
}

func decode(data []byte) (*request, error) {
	r := &request{url: "of the request before", Request: ads.Request{Subscribe: []string{"a"}, Initial: map[string]string{"a": "b"}, Refused: true}}
	return r, r.decode(data)
}

func TestARequestIsReadAsProtobufReadsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, names := example(), rapid.SliceOf(rapid.String())
		m.ResourceNamesSubscribe = names.Draw(t, "subscribe")
		m.ResourceNamesUnsubscribe = names.Draw(t, "unsubscribe")
		m.InitialResourceVersions = rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "initial")
		m.ResponseNonce = rapid.String().Draw(t, "nonce")
		if rapid.Bool().Draw(t, "acknowledged") {
			m.ErrorDetail = nil
		}
		if rapid.Bool().Draw(t, "later") {
			m.Node = nil
		}
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := asProtobuf(data)
		if d := cmp.Diff(want, got, asRequests...); d != "" {
			t.Errorf("the request (-want +got):\n%s", d)
		}
	})
}

func TestARequestIsRefusedWhen(t *testing.T) {
	long := strings.Repeat("x", maxName+1)
	for name, m := range map[string]*discovery.DeltaDiscoveryRequest{
		"a name is too long":      {ResourceNamesSubscribe: []string{long}},
		"a version is too long":   {InitialResourceVersions: map[string]string{"a": long}},
		"the type is too long":    {TypeUrl: long},
		"the nonce is too long":   {ResponseNonce: long},
		"a name to leave is long": {ResourceNamesUnsubscribe: []string{long}},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := decode(data); err == nil || !strings.Contains(err.Error(), "318 bytes, want at most 317") {
				t.Errorf("got %v", err)
			}
		})
	}
	for name, data := range map[string][]byte{
		"a field is cut off":   {0x12, 0x05, 'a'},
		"a tag has no end":     {0xff},
		"a node is no message": {0x0a, 0x01, 0xff},
		"an integer never ends": append([]byte{0x50}, []byte{
			0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		}...),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := decode(data); !errors.Is(err, errWire) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	data, err := proto.Marshal(example())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decode(data)
		want, wants := asProtobuf(data)
		if err != nil || wants != nil {
			if err != nil && wants == nil && !strings.Contains(err.Error(), "bytes, want at most") {
				t.Fatalf("protobuf reads it, and we do not: %v", err)
			}
			return // we read less of it, so we may see less that is wrong
		}
		// Of a node and a status that come in parts, and of numbers of more than 32
		// bits, nothing sends any.
		got.node, want.node = node{}, node{}
		if d := cmp.Diff(want, got, asRequests...); d != "" {
			t.Errorf("the request (-want +got):\n%s", d)
		}
	})
}

func TestAResponseIsWhatProtobufWouldMakeOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		send := &ads.Send{
			Type:    ads.Type(rapid.IntRange(0, 3).Draw(t, "type")),
			Nonce:   rapid.StringMatching(`[1-9][0-9]{0,5}`).Draw(t, "nonce"),
			Removed: rapid.SliceOf(rapid.StringMatching(`[a-z]{1,9}`)).Draw(t, "removed"),
		}
		want := &discovery.DeltaDiscoveryResponse{TypeUrl: send.Type.URL(), Nonce: send.Nonce, RemovedResources: send.Removed}
		for range rapid.IntRange(0, 4).Draw(t, "resources") {
			body := &anypb.Any{TypeUrl: send.Type.URL(), Value: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "body")}
			r := &ads.Resource{Type: send.Type, Name: rapid.StringN(0, 200, -1).Draw(t, "name"), Version: ads.Version{Sequence: rapid.Uint64().Draw(t, "sequence"), Hash: "h"}}
			r.Body, _ = proto.Marshal(body)
			send.Resources = append(send.Resources, r)
			want.Resources = append(want.Resources, &discovery.Resource{Name: r.Name, Version: r.Version.String(), Resource: body})
		}
		encoded, err := newCodec().Marshal(send)
		if err != nil {
			t.Fatal(err)
		}
		var got discovery.DeltaDiscoveryResponse
		if err := proto.Unmarshal(encoded.Materialize(), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, &got, protocmp.Transform()); d != "" {
			t.Errorf("the response (-want +got):\n%s", d)
		}
	})
}

// hundred resources of a kilobyte each, as a batch has them.
func hundred() *ads.Send {
	send := &ads.Send{Type: ads.Cluster, Nonce: "12345"}
	for range 100 {
		body, _ := proto.Marshal(&anypb.Any{TypeUrl: ads.Cluster.URL(), Value: make([]byte, 1000)})
		send.Resources = append(send.Resources, &ads.Resource{Type: ads.Cluster, Name: "shop/web|80|stable", Version: ads.Version{Sequence: 7, Hash: strings.Repeat("h", 22)}, Body: body})
	}
	return send
}

func BenchmarkEncodeResponse(b *testing.B) {
	send := hundred()
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			encode(send)
		}
	})
	b.Run("protobuf", func(b *testing.B) {
		b.ReportAllocs()
		m := &discovery.DeltaDiscoveryResponse{TypeUrl: send.Type.URL(), Nonce: send.Nonce}
		for _, r := range send.Resources {
			body := &anypb.Any{}
			if err := proto.Unmarshal(r.Body, body); err != nil {
				b.Fatal(err)
			}
			m.Resources = append(m.Resources, &discovery.Resource{Name: r.Name, Version: r.Version.String(), Resource: body})
		}
		for b.Loop() {
			if _, err := newCodec().Marshal(m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkDecodeFirstRequest has a node with 516 extensions, as Envoy 1.40 sends it.
func BenchmarkDecodeFirstRequest(b *testing.B) {
	m := example()
	for range 516 {
		m.Node.Extensions = append(m.Node.Extensions, &corev3.Extension{
			Name: "envoy.filters.http.something", Category: "envoy.filters.http",
			TypeUrls: []string{"envoy.extensions.filters.http.something.v3.SomethingOrOther"},
		})
	}
	data, err := proto.Marshal(m)
	if err != nil {
		b.Fatal(err)
	}
	var buffers mem.BufferSlice // as they come in frames of 16 KiB
	for frame := range slices.Chunk(data, 16<<10) {
		buffers = append(buffers, mem.SliceBuffer(frame))
	}
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := newCodec().Unmarshal(buffers, &request{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("protobuf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := newCodec().Unmarshal(buffers, &discovery.DeltaDiscoveryRequest{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestTheFirstMessageOfAnEnvoyTakesNoBufferThatIsMuchLonger(t *testing.T) {
	const length = 61_000
	buffer := messages.Get(length)
	defer messages.Put(buffer)
	if got := cap(*buffer); got > 2*length {
		t.Errorf("a message of %d bytes takes a buffer of %d", length, got)
	}
}
