// SPDX-License-Identifier: Apache-2.0

package envoyxds_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// printed is a resource as a golden file has it.
type printed struct {
	Type, Name, Version string
	Clusters            []string `json:",omitempty"`
	Body                json.RawMessage
}

// TestGolden shows what comes out for each feature. The files are also what a real
// Envoy is given.
func TestGolden(t *testing.T) {
	for name, mesh := range sets() {
		t.Run(name, func(t *testing.T) {
			resources, err := envoyxds.Resources(mesh, nil)
			if err != nil {
				t.Fatal(err)
			}
			check(t, name, resources)
		})
	}
	for name, set := range gateways() {
		t.Run(name, func(t *testing.T) { check(t, name, set.resources(t)) })
	}
	t.Run("gateway that leaves", func(t *testing.T) {
		r, err := envoyxds.Gateway{Port: 8080}.Leaving(nil)
		if err != nil {
			t.Fatal(err)
		}
		set := gateways()["gateway without host"].resources(t)
		check(t, "gateway that leaves", append(set[len(set)-1:], r))
	})
	t.Run("local ports", func(t *testing.T) { check(t, "local ports", localPorts(t)) })
	t.Run("missing", func(t *testing.T) {
		check(t, "missing", []*ads.Resource{
			envoyxds.Missing(ads.Key{Type: ads.Endpoints, Name: "shop/web|80|"}),
			envoyxds.Missing(ads.Key{Type: ads.Route, Name: "shop/web|80"}),
		})
	})
	t.Run("outbound", func(t *testing.T) {
		list := []printed{{Type: "Listener", Body: readable(t, envoyxds.Outbound(netip.MustParseAddrPort("127.0.0.1:15001")))}}
		for _, c := range envoyxds.OutboundClusters() {
			list = append(list, printed{Type: "Cluster", Name: c.Name, Body: readable(t, c)})
		}
		golden.Check(t, path("outbound"), indented(t, list))
	})
}

func path(name string) string {
	return filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".json")
}

func check(t *testing.T, name string, resources []*ads.Resource) {
	var list []printed
	for _, r := range resources {
		list = append(list, printed{r.Type.String(), r.Name, r.Version.String(), r.Clusters, readable(t, opened(t, r))})
	}
	sameVersionSameBody(t, path(name), list)
	golden.Check(t, path(name), indented(t, list))
}

// sameVersionSameBody fails also when files are rewritten: an Envoy that has a version
// is not sent it again, so one whose content changed needs a new one.
func sameVersionSameBody(t *testing.T, path string, now []printed) {
	before, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var was []printed
	if err := errors.Join(err, json.Unmarshal(before, &was)); err != nil {
		t.Fatal(err)
	}
	for _, a := range was {
		for _, b := range now {
			if a.Type == b.Type && a.Name == b.Name && a.Version == b.Version && !bytes.Equal(compact(t, a.Body), compact(t, b.Body)) {
				t.Errorf("%s %s has changed and its version has not: raise revision", a.Type, a.Name)
			}
		}
	}
}

// opened decodes what Envoy is sent.
func opened(t rapid.TB, r *ads.Resource) proto.Message {
	t.Helper()
	packed := &anypb.Any{}
	if err := proto.Unmarshal(r.Body, packed); err != nil {
		t.Fatal(err)
	}
	if packed.TypeUrl != r.Type.URL() {
		t.Fatalf("%s %s is sent as %s", r.Type, r.Name, packed.TypeUrl)
	}
	m, err := packed.UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// readable is JSON without the white space that protojson varies on purpose.
func readable(t *testing.T, m proto.Message) json.RawMessage {
	t.Helper()
	text, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func indented(t *testing.T, value any) []byte {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func compact(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
