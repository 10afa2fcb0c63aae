// SPDX-License-Identifier: Apache-2.0

package connectors_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/connectors"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

const (
	page  = "../../../docs/reference/connectors.md"
	begin = "<!-- generated from pkg/traffic/connectors; rewrite with UPDATE_GOLDEN=1 go test ./pkg/traffic/connectors -->\n"
	end   = "<!-- end of the generated part -->\n"
)

func TestThePageHasTheCapabilitiesOfTheCode(t *testing.T) {
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(content), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s lacks the marks around its generated part", page)
	}
	golden.Check(t, page, before+begin+connectors.Table(connectors.All())+end+after)
}

// A capability that is added to the code has a line, and each line follows the value.
func TestEachCapabilityHasALine(t *testing.T) {
	one := connectors.Connector{Name: "Any", Capabilities: traffic.FullCapabilities()}
	full := connectors.Table([]connectors.Connector{one})
	for i := range reflect.TypeFor[traffic.Capabilities]().NumField() {
		other := one
		reflect.ValueOf(&other.Capabilities).Elem().Field(i).SetZero()
		if connectors.Table([]connectors.Connector{other}) == full {
			t.Errorf("the table does not show %s", reflect.TypeFor[traffic.Capabilities]().Field(i).Name)
		}
	}
}

func TestEachConnectorHasAColumn(t *testing.T) {
	lines := strings.Split(connectors.Table([]connectors.Connector{{Name: "One"}, {Name: "Two"}}), "\n")
	if lines[0] != "| Capability | One | Two |" || lines[1] != "| --- | --- | --- |" {
		t.Errorf("the table begins with %q", lines[:2])
	}
}
