package main

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strandline/strandline/bench/peer"
)

// cell is one load.
type cell struct {
	RecordBytes int
	Producers   int
}

// phase of a measurement; producers look at it after each acknowledgement.
const (
	warming int32 = iota
	measuring
	over
)

// measureAppend is the closed loop.
func measureAppend(p peer.Peer, t task) (s sample, err error) {
	l, err := p.Open(t.Dir, t.Options)
	if err != nil {
		return s, fmt.Errorf("open: %w", err)
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if err := settle(t.Dir); err != nil {
		return s, err
	}
	var phase atomic.Int32
	failed := make(chan error, t.Producers)
	producers := make([]*producer, t.Producers)
	var running sync.WaitGroup
	for i := range producers {
		producers[i] = newProducer(l, i, t.RecordBytes)
		running.Go(func() { failed <- producers[i].loop(&phase) })
	}
	s, err = window(&phase, t, producers, failed)
	running.Wait()
	close(failed)
	for e := range failed {
		err = errors.Join(err, e)
	}
	return summed(s, producers, t), err
}

// settle lets the disk forget what was removed before this cell.
func settle(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}

// window goes through the phases, and takes what they cost. An error of a producer
// ends it early.
func window(phase *atomic.Int32, t task, producers []*producer, failed <-chan error) (s sample, err error) {
	defer phase.Store(over)
	if err := pass(t.WarmSeconds, producers, 1, failed); err != nil {
		return s, err
	}
	before, err := usageNow()
	if err != nil {
		return s, err
	}
	begin := time.Now()
	phase.Store(measuring)
	if err := pass(t.Seconds, producers, 2, failed); err != nil {
		return s, err
	}
	phase.Store(over)
	s.Seconds = time.Since(begin).Seconds()
	after, err := usageNow()
	if err != nil {
		return s, err
	}
	// Not divided yet: the rows are counted by the producers.
	s.AllocsPerRow = float64(after.mallocs - before.mallocs)
	s.CPUMicrosPerRow = float64((after.cpu - before.cpu).Microseconds())
	s.WrittenPerByte = float64(after.written - before.written)
	return s, nil
}

// prolonged caps a phase that waits for a slow log's acknowledgements.
const prolonged = 10

// pass waits so long, and longer if not even `each` records a producer came back
// meanwhile: of a log that takes half a second for one round, a second tells little.
func pass(seconds float64, producers []*producer, each int64, failed <-chan error) error {
	want := acknowledged(producers) + each*int64(len(producers))
	wait, latest := seconds, time.Now().Add(time.Duration(seconds*prolonged*float64(time.Second)))
	for {
		select {
		case <-time.After(time.Duration(wait * float64(time.Second))):
		case err := <-failed:
			return err
		}
		if acknowledged(producers) >= want || time.Now().After(latest) {
			return nil
		}
		wait = 0.01
	}
}

func acknowledged(producers []*producer) (n int64) {
	for _, p := range producers {
		n += p.acked.Load()
	}
	return n
}

// summed divides what the window cost by what the producers got through.
func summed(s sample, producers []*producer, t task) sample {
	var all histogram
	for _, p := range producers {
		all.merge(&p.times)
	}
	s.Rows = all.count()
	if s.Rows == 0 {
		return sample{Seconds: s.Seconds}
	}
	rows := float64(s.Rows)
	s.RowsPerSecond = rows / s.Seconds
	s.P50Micros = float64(all.quantile(0.50).Nanoseconds()) / 1e3
	s.P99Micros = float64(all.quantile(0.99).Nanoseconds()) / 1e3
	s.AllocsPerRow /= rows
	s.CPUMicrosPerRow /= rows
	s.WrittenPerByte /= rows * float64(t.RecordBytes)
	return s
}

// producer sends its next record once the last is durable.
type producer struct {
	send  func(rec []byte) error
	rec   []byte // random, with a number in front
	sent  uint64
	acked atomic.Int64
	times histogram
}

func newProducer(l peer.Log, n, size int) *producer {
	p := &producer{send: l.Producer(n), rec: make([]byte, size)}
	_, _ = rand.Read(p.rec) // documented never to fail
	return p
}

func (p *producer) loop(phase *atomic.Int32) error {
	for {
		p.sent++
		binary.LittleEndian.PutUint64(p.rec, p.sent)
		begin := time.Now()
		if err := p.send(p.rec); err != nil {
			return err
		}
		took := time.Since(begin)
		p.acked.Add(1)
		switch phase.Load() {
		case measuring:
			p.times.add(took)
		case over:
			return nil
		}
	}
}
