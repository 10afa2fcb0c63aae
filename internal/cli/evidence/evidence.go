// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/bucket"
)

// app carries out the commands of this package with an invocation.
type app struct{ *invocation.Invocation }

// Command returns the group "evidence" with its verbs.
func Command(inv *invocation.Invocation) *cobra.Command {
	a := &app{Invocation: inv}
	return invocation.NewGroup("evidence", "Show and verify the signed records of remediation and releases",
		`Show and verify the signed records that the executor leaves of every step and
every decision, of plans and of releases. Records are read from their store, from a
copy of it with --evidence, or through an executor that serves them. The format is
in docs/reference/evidence.md.`,
		a.getCommand(), a.verifyCommand())
}

// source is where records are, and by which keys they are believed.
type source struct {
	store   string
	keys    []string
	keyEnds string
	system  string
	offline bool
	// served is read where no store is named.
	served evidence.Store
}

func (s *source) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.store, "evidence", "", "Where the records are: a directory, file:///path, or s3://bucket?region=…. Left out: the executor, if it serves them.")
	flags.StringArrayVar(&s.keys, "key", nil, "File with public keys in PEM, repeatable. Left out: those of the ConfigMap "+records.KeysConfigMap+" in Plumbline's namespace.")
	flags.StringVar(&s.keyEnds, "key-ends", "", "File that says where keys end, as "+records.KeyEnds+" of that ConfigMap. Left out: that of the ConfigMap, unless --key is given.")
	flags.BoolVar(&s.offline, "offline", false, "Ask no cluster; needs --key.")
	invocation.AddSystemFlag(cmd, &s.system)
	invocation.MustMarkFilename(cmd, "key", "pem", "pub")
	invocation.MustMarkFilename(cmd, "key-ends", "json")
}

func (s *source) check(cmd *cobra.Command) error {
	switch {
	case s.store == "" && s.offline:
		return invocation.UsageErrorf(cmd, "--offline needs --evidence: say where the records are")
	case s.offline && len(s.keys) == 0:
		return invocation.UsageErrorf(cmd, "--offline needs --key: without the public key no record can be verified")
	case s.offline && s.system != "" && cmd.Name() == "get":
		return invocation.UsageErrorf(cmd, "--offline and --system-namespace exclude each other")
	}
	return nil
}

// open opens the store; the caller closes it.
func (s *source) open(ctx context.Context) (evidence.Store, func(), error) {
	if s.served != nil {
		return s.served, func() {}, nil
	}
	address := s.store
	if !strings.Contains(address, "://") {
		path, err := filepath.Abs(address)
		if err != nil {
			return nil, nil, fmt.Errorf("finding %s: %w", address, err)
		}
		address = fileURL(path)
	}
	store, err := bucket.Open(ctx, address)
	if err != nil {
		return nil, nil, err
	}
	return store, func() { _ = store.Close(ctx) }, nil // only read from
}

// find finds the records where no store is named.
func (s *source) find(ctx context.Context, c *invocation.Cluster, system string) (err error) {
	if s.store != "" {
		return nil
	}
	s.served, err = records.OpenServed(ctx, c, c.Proxy, system)
	s.store = servedName
	switch away, is := errors.AsType[*records.AwayError](err); {
	case is && away.Err == nil:
		return fmt.Errorf("%w; say where they are with --evidence", err)
	case is:
		return fmt.Errorf("--evidence names another place than the executor: %w", err)
	}
	return err
}

// servedName is how records are called that are read through the executor.
const servedName = "the executor"

// believed reads the public keys and their ends from files, else from the cluster.
func (s *source) believed(ctx context.Context, c *invocation.Cluster, system string) (k records.Keys, err error) {
	if len(s.keys) == 0 {
		k, err = publishedKeys(ctx, c, system)
	} else {
		k.Ring, err = s.keyring()
	}
	if err != nil || s.keyEnds == "" {
		return k, err
	}
	content, err := os.ReadFile(s.keyEnds)
	if err != nil {
		return k, fmt.Errorf("reading the ends of keys: %w", err)
	}
	k.Ends, err = evidence.ParseKeyEnds(content)
	return k, err
}

// keyring reads the public keys from files.
func (s *source) keyring() (*evidence.Keyring, error) {
	var files [][]byte
	for _, name := range s.keys {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading public keys: %w", err)
		}
		files = append(files, content)
	}
	return evidence.ParseKeyring(files...)
}

// publishedKeys reads the keys that the executor publishes.
func publishedKeys(ctx context.Context, c *invocation.Cluster, system string) (records.Keys, error) {
	found := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: system, Name: records.KeysConfigMap}, found); err != nil {
		return records.Keys{}, fmt.Errorf("reading the public keys (--key reads them from a file): %w", err)
	}
	k, err := records.ParseKeys(found)
	if _, is := errors.AsType[*records.NoKeyError](err); is {
		err = fmt.Errorf("%w --key reads keys from a file", err)
	}
	return k, err
}

// fileURL is the URL of an absolute path, with any characters.
func fileURL(path string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}
