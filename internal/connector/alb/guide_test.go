// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// policy is one of AWS IAM.
type policy struct {
	Version   string
	Statement []struct {
		Sid, Effect string
		Action      []string
		Resource    any
	}
}

// The policy of the guide permits the requests of the router, and no others. Writes name their resources.
func TestTheRightsOfTheGuideAreThoseThatTheRouterUses(t *testing.T) {
	page, err := os.ReadFile("../../../docs/guides/alb.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(page), "```json\n")
	text, _, ends := strings.Cut(rest, "```")
	if !begins || !ends {
		t.Fatal("the guide has no policy")
	}
	var of policy
	if err := json.Unmarshal([]byte(text), &of); err != nil {
		t.Fatal(err)
	}
	var permitted []string
	for _, statement := range of.Statement {
		for _, action := range statement.Action {
			if isWrite := strings.Contains(action, ":Modify"); isWrite == (statement.Resource == "*") || statement.Effect != "Allow" {
				t.Errorf("%s is permitted for %v (%s)", action, statement.Resource, statement.Effect)
			}
		}
		permitted = append(permitted, statement.Action...)
	}
	slices.Sort(permitted)
	if d := cmp.Diff(usedRights(), permitted); d != "" {
		t.Errorf("the rights of the guide (-used +guide):\n%s", d)
	}
}

// usedRights names the rights by the methods of the interfaces, which have the names of the requests.
func usedRights() (rights []string) {
	for prefix, api := range map[string]reflect.Type{"cloudwatch:": reflect.TypeFor[Metrics](), "elasticloadbalancing:": reflect.TypeFor[Balancers]()} {
		for method := range api.Methods() {
			rights = append(rights, prefix+method.Name)
		}
	}
	slices.Sort(rights)
	return rights
}
