// SPDX-License-Identifier: Apache-2.0

package guarded_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/cli/guarded"
)

func TestArgumentsNameObjectsAsThoseOfKubectlDo(t *testing.T) {
	shop := clitest.Cluster{Objects: clitest.ObjectsOf(clitest.BaselineOf("web"), clitest.BaselineOf("api"))}
	cases := map[string]struct {
		args []string
		s    guarded.Selection
		want []string
		err  string
	}{
		"TYPE/NAME":                {args: []string{"deployment/web"}, want: []string{"web"}},
		"TYPE NAME":                {args: []string{"deployment", "web"}, want: []string{"web"}},
		"TYPE NAME NAME":           {args: []string{"deployment", "web", "api"}, want: []string{"web", "api"}},
		"several TYPE/NAME":        {args: []string{"deployment/web", "deployments/api"}, want: []string{"web", "api"}},
		"TYPE":                     {args: []string{"deployment"}, want: []string{"api", "web"}},
		"TYPE,TYPE":                {args: []string{"deployment,deployments"}, want: []string{"api", "web"}},
		"TYPE with version, group": {args: []string{"deployments.v1.apps/web"}, want: []string{"web"}},
		"a kind":                   {args: []string{"Deployment/web"}, want: []string{"web"}},
		"no argument":              {want: []string{"api", "web"}},
		"TYPE/NAME after TYPE":     {args: []string{"deployment", "deployment/web"}, err: "there is no need to specify a resource type as a separate argument when passing arguments in resource/name form (e.g. 'status resource/<resource_name>'"},
		"NAME after TYPE/NAME":     {args: []string{"deployment/web", "api"}, err: "there is no need to specify a resource type"},
		"TYPE/":                    {args: []string{"deployment/"}, err: "arguments in resource/name form must have a single resource and name"},
		"/NAME":                    {args: []string{"/web"}, err: "arguments in resource/name form must have a single resource and name"},
		"TYPE/NAME/MORE":           {args: []string{"deployment/web/scale"}, err: "arguments in resource/name form may not have more than one slash"},
		"an unknown type":          {args: []string{"gizmo/web"}, err: `the server doesn't have a resource type "gizmo"`},
		"a comma too many":         {args: []string{"deployment,"}, err: `the server doesn't have a resource type ""`},
		"a name that is a path":    {args: []string{"deployment", ".."}, err: `".." is not a name`},
		"a name with a per cent":   {args: []string{"deployment", "a%2fb"}, err: "is not a name"},
		"a name and -A":            {args: []string{"deployment/web"}, s: guarded.Selection{AllNamespaces: true}, err: "a resource cannot be retrieved by name across all namespaces"},
		"TYPE NAME and -l":         {args: []string{"deployment", "web"}, s: guarded.Selection{Labels: "app=web"}, err: "name cannot be provided when a selector is specified"},
		"TYPE/NAME and -l":         {args: []string{"deployment/web"}, s: guarded.Selection{Labels: "app=web"}, err: "selectors and the all flag cannot be used when passing resource/name arguments"},
		"a type of the cluster":    {args: []string{"node/n"}, err: "nodes are not namespaced, and Plumbline guards namespaced objects only"},
		"a type of it alone":       {args: []string{"node"}, err: "nodes are not namespaced, and Plumbline guards namespaced objects only"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := guarded.Select(t.Context(), shop.Connect(t), &cobra.Command{Use: "status"}, tc.args, tc.s)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for i := range got.Baselines {
				names = append(names, got.Baselines[i].Spec.Target.Name)
			}
			if diff := cmp.Diff(tc.want, names); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamedObjectsAreCounted(t *testing.T) {
	for args, want := range map[string]int{"": 0, "deploy": 0, "deploy,sts": 0, "deploy web": 1, "deploy web api": 2, "deploy,sts web": 2, "deploy/web": 1, "deploy/web sts/db": 2} {
		if got := guarded.CountNames(strings.Fields(args)); got != want {
			t.Errorf("%q names %d objects, want %d", args, got, want)
		}
	}
}
