// SPDX-License-Identifier: Apache-2.0

package netfilter

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

func TestAnErrorOfTheKernelSaysWhatToDo(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want error
	}{
		"no capability":                     {syscall.EPERM, ErrNotPermitted},
		"a policy forbids it":               {syscall.EACCES, ErrNotPermitted},
		"no netlink for packet filters":     {syscall.EPROTONOSUPPORT, ErrNotSupported},
		"no nf_tables":                      {syscall.EINVAL, ErrNotSupported},
		"no nf_tables, in newer words":      {syscall.EOPNOTSUPP, ErrNotSupported},
		"no NAT in nf_tables":               {syscall.ENOENT, ErrNotSupported},
		"a family that the kernel does not": {syscall.EAFNOSUPPORT, ErrNotSupported},
		"no answer":                         {os.ErrDeadlineExceeded, ErrNoAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			err := failed("setting the rules", fmt.Errorf("netlink receive: %w", tc.err))
			if !errors.Is(err, tc.want) || !errors.Is(err, tc.err) {
				t.Errorf("%v, want %v and %v", err, tc.want, tc.err)
			}
			if way := inject.LabelMode + "=" + string(inject.Explicit); !strings.Contains(err.Error(), way) {
				t.Errorf("%v does not say %s", err, way)
			}
		})
	}
}

func TestAnErrorThatIsNotKnownIsNotExplained(t *testing.T) {
	err := failed("setting the rules", syscall.ENOMEM)
	if got, want := err.Error(), "setting the rules: "+syscall.ENOMEM.Error(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
