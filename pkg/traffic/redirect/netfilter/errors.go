// SPDX-License-Identifier: Apache-2.0

package netfilter

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
)

const explicit = "label the pod plumbline.dev/inject-mode=explicit, which needs no rules"

var (
	// ErrNotPermitted says that the process has no right to change the network.
	ErrNotPermitted = errors.New("the container needs the capability NET_ADMIN, which Pod Security grants in " +
		"privileged namespaces only: allow it, or " + explicit)
	// ErrNotSupported says that the kernel has not what the rules need.
	ErrNotSupported = errors.New("the node's kernel cannot redirect with nf_tables: it needs Linux 5.2 or newer with nf_tables, " +
		"nft_chain_nat and nft_redir (modprobe them on the node), or " + explicit)
	// ErrNoAnswer says that the kernel took longer than the context allowed. The rules
	// are as before or as wanted, nothing between.
	ErrNoAnswer = errors.New("the kernel did not answer in time: try again, or " + explicit)
)

// unsupported is what kernels answer when a part of nf_tables is missing.
var unsupported = []error{
	syscall.EPROTONOSUPPORT, syscall.EAFNOSUPPORT, syscall.EOPNOTSUPP, syscall.ENOENT, syscall.EINVAL, syscall.ENOPROTOOPT,
}

// failed adds to an error of the kernel what a person can do.
func failed(operation string, err error) error {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(os.ErrPermission):
		return fmt.Errorf("%s: %w (%w)", operation, ErrNotPermitted, err)
	case is(os.ErrDeadlineExceeded):
		return fmt.Errorf("%s: %w (%w)", operation, ErrNoAnswer, err)
	case slices.ContainsFunc(unsupported, is):
		return fmt.Errorf("%s: %w (%w)", operation, ErrNotSupported, err)
	}
	return fmt.Errorf("%s: %w", operation, err)
}
