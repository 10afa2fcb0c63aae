// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
		"Plumbline is not there":      {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "plumbline.dev", Kind: "Baseline"}}, `error: the server doesn't have the resource type "baselines": is Plumbline installed in this cluster? "kubectl plumbline doctor" tells more`},
		"a server without its reason": {&apierrors.StatusError{ErrStatus: metav1.Status{Message: "odd"}}, "error: odd"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Message(tc.err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
