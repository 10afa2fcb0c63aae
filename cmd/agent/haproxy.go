// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/plumbline-dev/plumbline/internal/agent"
	"github.com/plumbline-dev/plumbline/internal/connector/haproxy"
	"github.com/plumbline-dev/plumbline/internal/connector/haproxy/carry"
)

// haproxySettings are the flags for a HAProxy.
type haproxySettings struct{ instance, master string }

func (h *haproxySettings) addFlags(fs *flag.FlagSet) {
	fs.StringVar(&h.instance, "instance", "plb", "haproxy: tells programs of one network namespace apart: 1 to 32 letters and digits")
	fs.StringVar(&h.master, "master-socket", "", "haproxy: socket of the master; empty for master.sock in the folder")
}

// newHAProxy has the agent's own configuration behind those of the user's command.
func newHAProxy(s *settings) (*program, error) {
	own := filepath.Join(s.folder, haproxy.ConfigFile)
	master := cmp.Or(s.haproxy.master, filepath.Join(s.folder, "master.sock"))
	p := &program{passed: []os.Signal{syscall.SIGHUP, syscall.SIGUSR2}, close: func() error { return nil }}
	if !s.attach {
		p.child = agent.NewChild(append(slices.Clone(s.command), "-W", "-S", master, "-f", own), agent.HAProxySignals)
	}
	p.connector = agent.NewHAProxy(carry.Config{
		Options: haproxy.Options{Folder: s.folder, Instance: s.haproxy.instance}, Binary: s.command[0], User: configurations(s.command, own), Master: master,
	}, !s.attach)
	return p, nil
}

// configurations are the files that the user's command loads, without the agent's own.
func configurations(command []string, own string) (files []string) {
	for i, word := range command {
		if word == "-f" && i+1 < len(command) && command[i+1] != own {
			files = append(files, command[i+1])
		}
	}
	return files
}
