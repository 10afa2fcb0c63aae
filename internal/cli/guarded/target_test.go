// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestParseArguments(t *testing.T) {
	cases := map[string]struct {
		args []string
		want []Argument
		err  string
	}{
		"none":                      {},
		"TYPE/NAME":                 {args: []string{"deploy/web"}, want: []Argument{{"deploy", "web"}}},
		"TYPE NAME":                 {args: []string{"deploy", "web"}, want: []Argument{{"deploy", "web"}}},
		"TYPE NAME NAME":            {args: []string{"deploy", "web", "api"}, want: []Argument{{"deploy", "web"}, {"deploy", "api"}}},
		"several TYPE/NAME":         {args: []string{"deploy/web", "sts/db"}, want: []Argument{{"deploy", "web"}, {"sts", "db"}}},
		"TYPE":                      {args: []string{"deploy"}, want: []Argument{{"deploy", ""}}},
		"TYPE,TYPE":                 {args: []string{"deploy,sts"}, want: []Argument{{"deploy", ""}, {"sts", ""}}},
		"TYPE with version, group":  {args: []string{"deployments.v1.apps/web"}, want: []Argument{{"deployments.v1.apps", "web"}}},
		"TYPE/NAME after TYPE":      {args: []string{"deploy", "deploy/web"}, err: "there is no need to specify a resource type"},
		"NAME after TYPE/NAME":      {args: []string{"deploy/web", "api"}, err: `must have a single resource and name: "api"`},
		"TYPE/":                     {args: []string{"deploy/"}, err: "single resource and name"},
		"/NAME":                     {args: []string{"/web"}, err: "single resource and name"},
		"TYPE/NAME/MORE":            {args: []string{"deploy/web/scale"}, err: "single resource and name"},
		"an empty type":             {args: []string{"", "web"}, err: "names no type"},
		"a comma too many":          {args: []string{"deploy,"}, err: "names no type"},
		"a name that is a path":     {args: []string{"deploy", ".."}, err: `".." is not a name`},
		"a name with a per cent":    {args: []string{"deploy", "a%2fb"}, err: `is not a name`},
		"a slash in a separate one": {args: []string{"deploy", "a/b"}, err: "there is no need"},
	}
	cmd := &cobra.Command{Use: "status"}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseArguments(cmd, tc.args)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(Argument{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
