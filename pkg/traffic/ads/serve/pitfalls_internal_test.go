// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// The pitfalls by their numbers are those of docs/reference/xds-pitfalls.md.

func TestPitfall13WhatHasChangedIsComputedOnceForAllAndForNobodyElse(t *testing.T) {
	var all []*ads.Resource
	for i := range 1_000 {
		all = append(all, version(fmt.Sprint("r", i), 0, "1"))
	}
	g, others := NewGroup(ads.NewView(all...)), NewGroup(ads.NewView(all...))
	elsewhere := &counter{}
	before := g.now()
	others.join(elsewhere)
	g.Publish(ads.NewView(append(all[1:], version("r0", 0, "2"))...))
	_, first := g.since(before)
	_, second := g.since(before)
	if len(first) != 1 || &first[0] != &second[0] {
		t.Errorf("two proxies are told %v and %v, want the same one key", first, second)
	}
	if elsewhere.woken > 0 {
		t.Error("proxies of another scope are woken")
	}
}

// big is a response of so many resources of so many bytes.
func big(resources, bytes int) *ads.Send {
	send := &ads.Send{Type: ads.Cluster, Nonce: "1"}
	for i := range resources {
		send.Resources = append(send.Resources, &ads.Resource{Type: ads.Cluster, Name: fmt.Sprint("c", i), Version: ads.Version{Hash: "h"}, Body: make([]byte, bytes)})
	}
	return send
}

func TestPitfall15AResourceIsEncodedOnceForAllResponses(t *testing.T) {
	send := big(3, 1_000)
	for range 2 {
		parts, err := newCodec().Marshal(send)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range send.Resources {
			if body := parts[2*i+1].ReadOnlyData(); &body[0] != &r.Body[0] {
				t.Errorf("the body of %s is a copy", r.Name)
			}
		}
	}
}

func TestPitfall16AResponseCostsItsNamesAndNotItsBytes(t *testing.T) {
	own := func(send *ads.Send) (bytes int) {
		for i, part := range encode(send) {
			if i%2 == 0 { // the heads, and the tail; the bodies stand between
				bytes += part.Len()
			}
		}
		return bytes
	}
	small, large := big(100, 1_000), big(100, 100_000)
	few, many := testing.AllocsPerRun(10, func() { encode(small) }), testing.AllocsPerRun(10, func() { encode(large) })
	if few != many || own(large) > own(small)+2*len(large.Resources) {
		t.Errorf("%.0f objects and %d bytes for 100 KB, %.0f and %d for 10 MB", few, own(small), many, own(large))
	}
}

func TestPitfall17OfProxiesThatHaveGoneNothingIsLeft(t *testing.T) {
	s := New(Config{}, nil, NewProofs(), nil, nil)
	var sessions []*session
	for i := range 1_000 {
		own := &session{proxy: identity.Proxy{Pod: fmt.Sprint(i), PodUID: fmt.Sprint(i / 2)}}
		if err := s.add(own); err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, own)
	}
	for _, own := range sessions {
		s.remove(own)
	}
	s.sweep(time.Now().Add(time.Minute))
	if len(s.pods) != 0 {
		t.Errorf("%d pods are left", len(s.pods))
	}
}

// What is not written cannot cost anything, nor be told to anybody.
func TestPitfall20NothingIsLogged(t *testing.T) {
	for _, directory := range []string{".", ".."} {
		files, err := filepath.Glob(filepath.Join(directory, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files: %v", len(files), err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range file.Imports {
				name, _ := strconv.Unquote(i.Path.Value)
				if slices.Contains([]string{"log", "log/slog", "github.com/go-logr/logr", "k8s.io/klog/v2"}, name) {
					t.Errorf("%s imports %s", path, name)
				}
			}
		}
	}
}
