// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// StoreIn has etcd keep its data in a directory, for [Backup] and [Restore].
func StoreIn(directory string) Option {
	return func(server *envtest.Environment) { server.ControlPlane.Etcd.DataDir = directory }
}

// Backup copies what etcd has stored into a directory that is not there. The API server and etcd are
// away meanwhile.
func Backup(server *envtest.Environment, into string) error {
	return offline(server, func(data string) error { return os.CopyFS(into, os.DirFS(data)) })
}

// Restore puts the data of a [Backup] in place of what etcd has stored. Revisions go back with them.
func Restore(server *envtest.Environment, from string) error {
	return offline(server, func(data string) error {
		if err := os.RemoveAll(data); err != nil {
			return err
		}
		return os.CopyFS(data, os.DirFS(from))
	})
}

// offline changes the data of etcd while neither etcd nor the API server runs.
func offline(server *envtest.Environment, change func(data string) error) error {
	if err := Kill(server); err != nil {
		return err
	}
	etcd := server.ControlPlane.Etcd
	if err := etcd.Stop(); err != nil {
		return fmt.Errorf("stopping etcd: %w", err)
	}
	if err := change(etcd.DataDir); err != nil {
		return fmt.Errorf("changing the data of etcd: %w", err)
	}
	etcd.Args = nil //nolint:staticcheck // a start leaves its arguments there, and the next one would add them again
	if err := etcd.Start(); err != nil {
		return fmt.Errorf("starting etcd again: %w", err)
	}
	return Revive(server)
}
