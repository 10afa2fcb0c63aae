// SPDX-License-Identifier: Apache-2.0

package inject

import (
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

func TestBootstrapsAreThoseInTheFiles(t *testing.T) {
	for name, c := range bootstraps() {
		t.Run(name, func(t *testing.T) {
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
			golden.Check(t, filepath.Join("testdata", "bootstrap", name+".json"), append(raw, '\n'))
		})
	}
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
