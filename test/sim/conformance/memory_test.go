// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/conformance"
)

// memory is the simulated server.
func memory() conformance.Server {
	epoch := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	kinds := append(apiserver.Builtin(), apiserver.Custom("sim.plumbline.dev", "v1", "widgets", "Widget", true))
	server := apiserver.New(func() time.Time { return epoch }, kinds...)
	return func(method, path, contentType string, body []byte) (int, []byte, error) {
		at, err := url.Parse(path)
		if err != nil {
			return 0, nil, err
		}
		answer := server.Do(apiserver.Request{
			User: "admin", Client: "test", Method: method, Path: at.Path, Query: at.Query(), ContentType: contentType, Body: body,
		})
		return answer.Code, answer.Body, nil
	}
}

// conforms holds a server against the table.
func conforms(t *testing.T, server conformance.Server) {
	t.Helper()
	table := conformance.Table()
	for i, name := range slices.Sorted(maps.Keys(table)) {
		t.Run(name, func(t *testing.T) {
			row := table[name]
			got, err := row.Ask(server, fmt.Sprintf("row-%d", i))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.Want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheSimulatedServerAnswersAsTheTableSays(t *testing.T) { conforms(t, memory()) }
