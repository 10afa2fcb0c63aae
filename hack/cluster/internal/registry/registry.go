// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"golang.org/x/sync/errgroup"
)

const headerTimeout = 10 * time.Second

// Server is a registry that listens and does not serve yet.
type Server struct {
	listeners []net.Listener
	server    *http.Server
}

// Listen takes the addresses. From its return on connections are accepted, and
// answered once [Server.Serve] runs.
func Listen(ctx context.Context, addresses []netip.AddrPort) (*Server, error) {
	quiet := log.New(io.Discard, "", 0)
	s := &Server{server: &http.Server{
		Handler:           registry.New(registry.Logger(quiet)),
		ReadHeaderTimeout: headerTimeout,
		ErrorLog:          quiet,
	}}
	for _, address := range addresses {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address.String())
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listening for the registry: %w", err), s.close())
		}
		s.listeners = append(s.listeners, listener)
	}
	return s, nil
}

// Serve answers until the context ends; that end is no error. Everything that
// was pushed is forgotten.
func (s *Server) Serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, listener := range s.listeners {
		group.Go(func() error {
			if err := s.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serving the registry at %s: %w", listener.Addr(), err)
			}
			return nil
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		return s.server.Close()
	})
	return group.Wait()
}

func (s *Server) close() error {
	var problems []error
	for _, listener := range s.listeners {
		problems = append(problems, listener.Close())
	}
	return errors.Join(problems...)
}
