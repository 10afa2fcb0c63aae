// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/control"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/issuer"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/target"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/world"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
)

// addresses that a server listens on. Several, because there are some 28,000 local
// ports for each, and a port is kept for a minute after its connection was cut.
const addresses = 8

// serving is the process that serves.
type serving struct {
	world *world.World
	acks  *target.Acks
	of    target.Server

	sent, received atomic.Int64
}

func shapeFlags(fs *flag.FlagSet, s *world.Shape) {
	fs.IntVar(&s.Proxies, "proxies", 100, "proxies, each with a connection of its own")
	fs.IntVar(&s.Services, "services", 500, "services in the mesh")
	fs.IntVar(&s.Dependencies, "dependencies", 50, "services that each proxy sees")
	fs.IntVar(&s.Endpoints, "endpoints", 3, "endpoints of each service")
}

// serveMain serves until in ends.
func serveMain(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	fs := flag.NewFlagSet("xdsload serve", flag.ContinueOnError)
	var shape world.Shape
	shapeFlags(fs, &shape)
	kind := fs.String("server", string(target.Plumbline), "plumbline, snapshot or linear")
	cpu := fs.String("cpuprofile", "", "file for a profile of the processor")
	heap := fs.String("memprofile", "", "file for a profile of the memory, each time that it is measured after a collection")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *cpu != "" {
		end, err := profileProcessor(*cpu)
		if err != nil {
			return err
		}
		defer end()
	}
	w, err := world.New(shape)
	if err != nil {
		return err
	}
	by, err := issuer.New()
	if err != nil {
		return err
	}
	s := &serving{world: w, acks: &target.Acks{}}
	if s.of, err = target.New(ctx, target.Kind(*kind), w, by, s.acks); err != nil {
		return err
	}
	return s.serve(ctx, by, in, out, *heap)
}

// serve says where, and obeys.
func (s *serving) serve(ctx context.Context, by *issuer.Issuer, in io.Reader, out io.Writer, heap string) error {
	ready, stop, err := s.listen(by)
	if err != nil {
		return err
	}
	defer stop()
	encoder := json.NewEncoder(out)
	if err := encoder.Encode(ready); err != nil {
		return fmt.Errorf("telling that the server is ready: %w", err)
	}
	return s.obey(ctx, json.NewDecoder(in), encoder, heap)
}

// listen on all addresses.
func (s *serving) listen(by *issuer.Issuer) (control.Ready, func(), error) {
	key, err := by.Bytes()
	if err != nil {
		return control.Ready{}, nil, fmt.Errorf("encoding the key of the issuer: %w", err)
	}
	ips := make([]net.IP, addresses)
	for i := range ips {
		ips[i] = net.IPv4(127, 0, 0, byte(i+1))
	}
	certificate, err := issuer.Certificate(ips)
	if err != nil {
		return control.Ready{}, nil, err
	}
	g := grpc.NewServer(append(serve.Options(), grpc.Creds(credentials.NewServerTLSFromCert(&certificate)))...)
	s.of.Register(g)
	ready := control.Ready{Certificate: certificate.Certificate[0], Key: key}
	for _, ip := range ips {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: ip})
		if err != nil {
			g.Stop()
			return ready, nil, fmt.Errorf("listening: %w", err)
		}
		ready.Addresses = append(ready.Addresses, l.Addr().String())
		go func() { _ = g.Serve(&counted{l, s}) }() // ends with g
	}
	return ready, g.Stop, nil
}

// obey commands until there are no more.
func (s *serving) obey(ctx context.Context, in *json.Decoder, out *json.Encoder, heap string) error {
	for {
		var c control.Command
		if err := in.Decode(&c); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a command: %w", err)
		}
		answer, err := s.do(ctx, c, heap)
		if err != nil {
			answer.Error = err.Error()
		}
		if err := out.Encode(answer); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
}

func (s *serving) do(ctx context.Context, c control.Command, heap string) (a control.Answer, err error) {
	switch c.Op {
	case control.Publish:
		return a, s.publish(c)
	case control.Await:
		ctx, cancel := context.WithTimeout(ctx, c.Within)
		defer cancel()
		a.Took = s.acks.Await(ctx)
		return a, nil
	case control.Collect:
		if a, err = s.usage(true); err == nil && heap != "" {
			err = profile(heap)
		}
		return a, err
	case control.Measure:
		return s.usage(false)
	default:
		return a, fmt.Errorf("there is no command %q", c.Op)
	}
}

func (s *serving) usage(collect bool) (a control.Answer, err error) {
	a.Usage, err = control.Own(collect)
	a.Usage.Sent, a.Usage.Received = s.sent.Load(), s.received.Load()
	a.Usage.Streams, a.Usage.Troubles = s.of.Streams(), s.of.Troubles()
	return a, err
}

// profileProcessor from now to the end.
func profileProcessor(path string) (end func(), err error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("profiling: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, fmt.Errorf("profiling: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close() // a profile that is cut off shows itself
	}, nil
}

func profile(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	runtime.GC()
	return errors.Join(pprof.WriteHeapProfile(file), file.Close())
}

// publish takes a step. What it takes to translate it is not measured here.
func (s *serving) publish(c control.Command) error {
	changed, err := s.world.Change(c.Target, c.Step)
	if err != nil {
		return err
	}
	version, err := s.of.Version(changed)
	if err != nil {
		return err
	}
	var groups []int
	for g := range s.world.Groups() {
		if s.world.Sees(g, c.Target) {
			groups = append(groups, g)
		}
	}
	s.acks.Begin(changed, version, c.Expect)
	return s.of.Publish(groups, changed)
}

// counted counts what goes over its connections.
type counted struct {
	net.Listener
	server *serving
}

// Accept implements net.Listener.
func (c *counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return serve.Records(&countedConn{conn, c.server}), nil
}

type countedConn struct {
	net.Conn
	server *serving
}

// Read implements net.Conn.
func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.server.received.Add(int64(n))
	return n, err
}

// Write implements net.Conn.
func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.server.sent.Add(int64(n))
	return n, err
}
