// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package main

import (
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/controller/abrelease"
	"github.com/plumbline-dev/plumbline/internal/discovery"
)

func TestTimesAreReadFromTheEnvironment(t *testing.T) {
	tests := map[string]struct {
		text  string
		want  times
		fails bool
	}{
		"those of production by default": {"", times{}, false},
		"some": {"window=20s,settles=2s", times{
			mesh: discovery.Times{Window: 20 * time.Second}, abrelease: abrelease.Times{Settles: 2 * time.Second},
		}, false},
		"all": {"goodbye=1s,window=2s,acknowledged=3s,ledger=4s,counts=5s,settles=6s", times{
			mesh: discovery.Times{Goodbye: time.Second, Window: 2 * time.Second},
			abrelease: abrelease.Times{
				Acknowledged: 3 * time.Second, Ledger: 4 * time.Second, Counts: 5 * time.Second, Settles: 6 * time.Second,
			},
		}, false},
		"no other name":     {"patience=1s", times{}, true},
		"no name alone":     {"window", times{}, true},
		"no other duration": {"window=long", times{}, true},
		"no zero":           {"window=0s", times{}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := timesOf(func(string) string { return tc.text })
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
