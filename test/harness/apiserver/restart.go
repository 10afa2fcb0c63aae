// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Restart kills an API server and starts it again at the same address; etcd runs on.
// It keeps its certificates if it was started with [CertificatesIn].
func Restart(server *envtest.Environment) error {
	if err := Kill(server); err != nil {
		return err
	}
	return Revive(server)
}

// Kill kills an API server; etcd runs on.
func Kill(server *envtest.Environment) error {
	api := server.ControlPlane.GetAPIServer()
	pid, err := childWith("--secure-port=" + api.Port)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing the API server: %w", err)
	}
	if err := api.Stop(); err != nil {
		return fmt.Errorf("waiting for the end of the API server: %w", err)
	}
	return nil
}

// Revive starts an API server that was killed, as Restart does.
func Revive(server *envtest.Environment) error {
	api := server.ControlPlane.GetAPIServer()
	api.Args = nil //nolint:staticcheck // a start leaves its arguments there, and the next one would add them again
	if err := api.Start(); err != nil {
		return fmt.Errorf("starting the API server again: %w", err)
	}
	return nil
}

// childWith is the process that this one started with an argument.
func childWith(argument string) (pid int, err error) {
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getpid()))
	if err != nil {
		return 0, fmt.Errorf("looking for children: %w", err)
	}
	for _, path := range children {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		for field := range strings.FieldsSeq(string(raw)) {
			command, err := os.ReadFile(filepath.Join("/proc", field, "cmdline"))
			if err == nil && slices.Contains(strings.Split(string(command), "\x00"), argument) {
				return strconv.Atoi(field)
			}
		}
	}
	return 0, errors.New("no child of this process has the argument " + argument)
}
