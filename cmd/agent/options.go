// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// settings of the process.
type settings struct {
	connector, servers, serverName, token, authority, node string
	folder                                                 string
	attach                                                 bool
	haproxy                                                haproxySettings
	nginx                                                  nginxSettings
	metricsAddress, healthAddress, logFormat, logLevel     string
	drainDelay, grace, flush                               time.Duration
	// command is the program with its arguments.
	command []string
}

// parse reads `run [flags] -- program arguments`. Flags that are not given come from the environment.
func parse(args []string, lookup func(string) (string, bool), help io.Writer) (settings, error) {
	var s settings
	fs := s.newFlags()
	fs.SetOutput(help)
	if len(args) == 0 || args[0] != "run" {
		return s, errors.New("reading the arguments: want `run [flags] -- program arguments`")
	}
	own, command, _ := cut(args[1:])
	if err := options.Parse(fs, own, lookup); err != nil {
		return s, err //nolint:wrapcheck // it says what it reads
	}
	s.command = command
	return s, s.check()
}

// newFlags returns the flags of the process, which set the settings.
func (s *settings) newFlags() *flag.FlagSet {
	fs := flag.NewFlagSet("agent run", flag.ContinueOnError)
	fs.StringVar(&s.connector, "connector", "", "program that the agent serves: haproxy or nginx")
	fs.StringVar(&s.servers, "xds-servers", "", "addresses of the discovery server, host:port, separated by commas")
	fs.StringVar(&s.serverName, "xds-server-name", "", "name that the certificate of the discovery server has; empty for the host of the address")
	fs.StringVar(&s.token, "token-file", filepath.Join(inject.Directory, "token"), "file with the token of the pod, which the kubelet renews")
	fs.StringVar(&s.authority, "ca-file", filepath.Join(inject.Directory, "ca.crt"), "file with the CA certificates of the discovery server")
	fs.StringVar(&s.node, "node", "", "namespace and name of the pod, NAMESPACE/POD, which the discovery server shows")
	fs.StringVar(&s.folder, "folder", "/var/lib/plumbline", "folder on a volume for the files of the agent and of the program")
	fs.BoolVar(&s.attach, "attach", false, "the program runs by itself, and loads the files: do not start it")
	s.haproxy.addFlags(fs)
	s.nginx.addFlags(fs)
	fs.StringVar(&s.metricsAddress, "metrics-address", ":8080", "address of the Prometheus metrics")
	fs.StringVar(&s.healthAddress, "health-address", ":8081", "address of /healthz and /readyz")
	fs.StringVar(&s.logFormat, "log-format", "json", "json or text")
	fs.StringVar(&s.logLevel, "log-level", "info", "debug, info, warn or error")
	fs.DurationVar(&s.flush, "flush-interval", 10*time.Second, "how often the discovery server is told of counts, as Envoys tell it")
	fs.DurationVar(&s.drainDelay, "drain-delay", 5*time.Second, "time between the order to stop and the end of the program, in which the pod is not ready")
	fs.DurationVar(&s.grace, "grace", 20*time.Second, "time that the program has to answer its requests; then the agent ends the program")
	return fs
}

// cut the arguments at the first --.
func cut(args []string) (before, after []string, found bool) {
	for i, a := range args {
		if a == "--" {
			return args[:i], args[i+1:], true
		}
	}
	return args, nil, false
}

func (s *settings) check() error {
	var errs []error
	if makers[s.connector] == nil {
		errs = append(errs, fmt.Errorf("--connector: %q is not known: want haproxy or nginx", s.connector))
	}
	errs = append(errs, s.nginx.check())
	for _, address := range s.addresses() {
		if _, _, err := net.SplitHostPort(address); err != nil {
			errs = append(errs, fmt.Errorf("--xds-servers: %w", err))
		}
	}
	if len(s.command) == 0 {
		errs = append(errs, errors.New("the program is missing: write it, with its arguments, behind --"))
	}
	if strings.Count(s.node, "/") != 1 {
		errs = append(errs, fmt.Errorf("--node: %q is not NAMESPACE/POD", s.node))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("checking the options: %w", err)
	}
	return nil
}

func (s *settings) addresses() []string { return strings.Split(s.servers, ",") }
