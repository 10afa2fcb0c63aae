// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// bootstraps by the name of their golden file.
func bootstraps() map[string]BootstrapConfig {
	base := installation().Bootstrap
	explicit, redirect, dual, byAddress := base, base, base, base
	redirect.Capture = true
	dual.Capture, dual.IPv6 = true, true
	byAddress.XDSHost = "10.96.0.20"
	gateway := base
	gateway.MaxConnections = 10_000
	return map[string]BootstrapConfig{
		"explicit": explicit, "redirect": redirect, "redirect-dual-stack": dual, "by-address": byAddress, "gateway": gateway,
	}
}

// wholeBootstrap is the golden file that the others say their difference from. The files
// are indented: each has all of what Bootstrap made but its being on one line.
const wholeBootstrap = "explicit.json"

func TestBootstrapsAreThoseInTheFiles(t *testing.T) {
	made := bootstraps()
	directory := filepath.Join("testdata", "bootstrap")
	golden.Check(t, filepath.Join(directory, wholeBootstrap), indented(t, made["explicit"]))
	delete(made, "explicit")
	for name, c := range made {
		t.Run(name, func(t *testing.T) {
			golden.CheckDifference(t, wholeBootstrap, filepath.Join(directory, name+".diff"), indented(t, c))
		})
	}
}

// indented makes a bootstrap that Envoy's own rules accept.
func indented(t *testing.T, c BootstrapConfig) string {
	t.Helper()
	raw, err := Bootstrap(c)
	if err != nil {
		t.Fatal(err)
	}
	var b bootstrapv3.Bootstrap
	if err := protojson.Unmarshal(raw, &b); err != nil {
		t.Fatal(err)
	}
	if err := b.ValidateAll(); err != nil {
		t.Error(err)
	}
	var compact, text bytes.Buffer
	if err := errors.Join(json.Compact(&compact, raw), json.Indent(&text, raw, "", "  ")); err != nil {
		t.Fatal(err)
	}
	if compact.String() != string(raw) {
		t.Errorf("it has blanks that nothing needs: %s", raw)
	}
	return text.String() + "\n"
}

func TestLatencyBucketsAreAtLeastThirtyAndGeometric(t *testing.T) {
	buckets := latencyBuckets()
	if len(buckets) < 30 || buckets[0] != 1 || buckets[len(buckets)-1] != 65536 {
		t.Fatalf("%d buckets: %v", len(buckets), buckets)
	}
	for i := 1; i < len(buckets); i++ {
		if ratio := buckets[i] / buckets[i-1]; ratio < 1.414 || ratio > 1.415 {
			t.Errorf("bucket %d is %.3f times the one before", i, ratio)
		}
	}
}
