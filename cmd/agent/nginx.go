// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/plumbline-dev/plumbline/internal/agent"
	"github.com/plumbline-dev/plumbline/internal/connector/nginx"
	"github.com/plumbline-dev/plumbline/internal/connector/nginx/carry"
)

// nginxSettings are the flags for an nginx.
type nginxSettings struct {
	pidFile, reloadLoss    string
	keepaliveMin, shutdown time.Duration
	log                    netip.AddrPort
}

// Values of --reload-loss.
const lossAllowed, lossRefused = "Allowed", "Refused"

func (n *nginxSettings) addFlags(fs *flag.FlagSet) {
	fs.StringVar(&n.pidFile, "pid-file", "/run/nginx.pid", "nginx: file with the PID of the master, which the agent reads with --attach")
	fs.TextVar(&n.log, "log-address", netip.MustParseAddrPort("127.0.0.1:15514"), "nginx: UDP port of a loopback address to which the program tells its requests")
	fs.DurationVar(&n.keepaliveMin, "keepalive-min", 5*time.Second, "nginx: how long a worker of before a reload keeps an idle connection of a client")
	fs.DurationVar(&n.shutdown, "worker-shutdown-timeout", 4*time.Minute, "nginx: how long a worker of before a reload lives at most; 0 for no bound")
	fs.StringVar(&n.reloadLoss, "reload-loss", lossRefused, "nginx: Allowed serves versions before 1.27.4, which lose requests at each reload; or Refused")
}

func (n *nginxSettings) check() error {
	if n.reloadLoss != lossAllowed && n.reloadLoss != lossRefused {
		return fmt.Errorf("--reload-loss: %q is not %s or %s", n.reloadLoss, lossAllowed, lossRefused)
	}
	return nil
}

// newNGINX listens to the log of the program, and runs the user's command in the foreground.
func newNGINX(s *settings) (*program, error) {
	command, err := nginx.ParseCommand(s.command)
	if err != nil {
		return nil, err
	}
	p := &program{passed: []os.Signal{syscall.SIGHUP, syscall.SIGUSR1}}
	master := func() (int, error) { return carry.ReadPID(s.nginx.pidFile) }
	if !s.attach {
		text, err := os.ReadFile(command.User) //nolint:gosec // the user's own configuration
		if err != nil {
			return nil, fmt.Errorf("reading nginx's configuration: %w", err)
		}
		p.child = agent.NewChild(command.InForeground(string(text)), agent.NGINXSignals)
		master = p.child.PID
	}
	lines, err := carry.Listen(s.nginx.log)
	if err != nil {
		return nil, err
	}
	p.close = lines.Close
	p.connector = agent.NewNGINX(carry.Config{
		Options: nginx.Options{Folder: s.folder, LogAddress: s.nginx.log, KeepaliveMin: s.nginx.keepaliveMin, Shutdown: s.nginx.shutdown},
		Binary:  command.Binary, User: command.User, Arguments: command.Arguments(), Master: master, Lines: lines,
		ReloadLossAllowed: s.nginx.reloadLoss == lossAllowed,
	})
	return p, nil
}
