// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestParseArguments(t *testing.T) {
	cases := map[string]struct {
		args []string
		want []argument
		err  string
	}{
		"none":                      {},
		"TYPE/NAME":                 {args: []string{"deploy/web"}, want: []argument{{"deploy", "web"}}},
		"TYPE NAME":                 {args: []string{"deploy", "web"}, want: []argument{{"deploy", "web"}}},
		"TYPE NAME NAME":            {args: []string{"deploy", "web", "api"}, want: []argument{{"deploy", "web"}, {"deploy", "api"}}},
		"several TYPE/NAME":         {args: []string{"deploy/web", "sts/db"}, want: []argument{{"deploy", "web"}, {"sts", "db"}}},
		"TYPE":                      {args: []string{"deploy"}, want: []argument{{"deploy", ""}}},
		"TYPE,TYPE":                 {args: []string{"deploy,sts"}, want: []argument{{"deploy", ""}, {"sts", ""}}},
		"TYPE with version, group":  {args: []string{"deployments.v1.apps/web"}, want: []argument{{"deployments.v1.apps", "web"}}},
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
			got, err := parseArguments(cmd, tc.args)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(argument{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessage_IsKubectls(t *testing.T) {
	baselines := schema.GroupResource{Group: "plumbline.dev", Resource: "baselines"}
	refused := &url.Error{Op: "Get", URL: "https://10.0.0.1:6443/api", Err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}
	cases := map[string]struct {
		err  error
		want string
	}{
		"plain":                       {errors.New("broken"), "error: broken"},
		"already prefixed":            {errors.New("error: broken"), "error: broken"},
		"the server's":                {apierrors.NewNotFound(baselines, "x"), `Error from server (NotFound): baselines.plumbline.dev "x" not found`},
		"the server's, in a context":  {fmt.Errorf("doing it: %w", apierrors.NewNotFound(baselines, "x")), `Error from server (NotFound): doing it: baselines.plumbline.dev "x" not found`},
		"several":                     {errors.Join(errors.New("a"), apierrors.NewUnauthorized("no")), "error: a\nError from server (Unauthorized): no"},
		"refused":                     {fmt.Errorf("asking: %w", refused), "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?"},
		"unreachable":                 {&url.Error{Op: "Get", URL: "https://x", Err: errors.New("no such host")}, "Unable to connect to the server: no such host"},
		"Plumbline is not there":      {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "plumbline.dev", Kind: "Baseline"}}, `error: the server doesn't have the resource type "baselines": is Plumbline installed in this cluster?`},
		"a server without its reason": {&apierrors.StatusError{ErrStatus: metav1.Status{Message: "odd"}}, "error: odd"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := message(tc.err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPrintable_ShowsNothingThatMovesTheCursor(t *testing.T) {
	for text, want := range map[string]string{"ok é 世": "ok é 世", "a\x1b[2Jb": "a\ufffd[2Jb", "a\nb\rc\td": "a\ufffdb\ufffdc\ufffdd", "\u202eevil": "\ufffdevil", "\u009b": "\ufffd"} {
		if got := printable(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got := short(strings.Repeat("é", 50), 10); got != "ééééééééé…" {
		t.Errorf("short gave %q", got)
	}
}
