// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"io"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Environment has the streams and the clock that a process lends to the plugin.
type Environment struct {
	// In is standard input; Out and Err are standard output and standard error.
	In       io.Reader
	Out, Err io.Writer
	// Now is the clock that relative ages are counted from.
	Now func() time.Time
	// Version of the plugin, as "kubectl plumbline version" prints it.
	Version string
}

// Invocation is one run of the plugin, as its commands share it.
type Invocation struct {
	genericiooptions.IOStreams
	// Now is the clock that relative ages are counted from.
	Now func() time.Time
	// Version of the plugin.
	Version string
	// ConfigFlags are the connection flags of kubectl.
	ConfigFlags *genericclioptions.ConfigFlags
	// Connect reaches the cluster that the flags and the kubeconfig name. It
	// is called by the commands that need one: hash -f works without.
	Connect func() (*Cluster, error)
	// IsInteractive tells whether a person can answer a question.
	IsInteractive func() bool
	// AllowsColor tells whether standard output shows colors; nil for no.
	AllowsColor func() bool
}

// New returns an invocation by env that reads the flags of kubectl.
func New(env Environment) *Invocation {
	inv := &Invocation{
		IOStreams:   genericiooptions.IOStreams{In: env.In, Out: env.Out, ErrOut: env.Err},
		Now:         env.Now,
		Version:     env.Version,
		ConfigFlags: genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(ClientBurst).WithDiscoveryQPS(ClientQPS),
	}
	inv.Connect = inv.connectByFlags
	inv.IsInteractive, inv.AllowsColor = isInteractive(env.In), allowsColor(env.Out)
	return inv
}

// WithOut returns an invocation like this one that prints to out.
func (inv *Invocation) WithOut(out io.Writer) *Invocation {
	other := *inv
	other.Out = out
	return &other
}
