package peer

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var jetStream = Peer{
	Name: "JetStream", Role: Rival, Module: "github.com/nats-io/nats-server/v2", Slow: true,
	Note: "an embedded server with sync_always, reached within the process; file storage, one stream; filled for replay without sync_always. Its default mode acknowledges before any fsync and is not a peer",
	Open: openJetStream, Replay: replayJetStream,
}

const (
	jetName  = "LOG"
	jetStart = 5 * time.Minute // a restart reads the stream's blocks
)

type jetLog struct {
	server *server.Server
	conn   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
}

func openJet(dir string, o Options) (*jetLog, error) {
	s, err := server.NewServer(&server.Options{
		ServerName: "bench", DontListen: true, NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: dir, SyncAlways: !o.Unsynced, SyncInterval: 2 * time.Minute,
	})
	if err != nil {
		return nil, err
	}
	s.Start()
	l := &jetLog{server: s}
	if !s.ReadyForConnections(jetStart) {
		return nil, errors.Join(errors.New("the server does not come up"), l.Close())
	}
	if err := l.connect(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *jetLog) connect() (err error) {
	if l.conn, err = nats.Connect("", nats.InProcessServer(l.server)); err != nil {
		return err
	}
	if l.js, err = jetstream.New(l.conn); err != nil {
		return err
	}
	l.stream, err = l.js.CreateOrUpdateStream(context.Background(), jetstream.StreamConfig{
		Name: jetName, Subjects: []string{"log"}, Storage: jetstream.FileStorage,
	})
	return err
}

func openJetStream(dir string, o Options) (Log, error) {
	l, err := openJet(dir, o)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *jetLog) Producer(int) func(rec []byte) error {
	return func(rec []byte) error {
		_, err := l.js.Publish(context.Background(), "log", rec)
		return err
	}
}

func (l *jetLog) Close() error {
	if l.conn != nil {
		l.conn.Close()
	}
	l.server.Shutdown()
	l.server.WaitForShutdown()
	return nil
}

func replayJetStream(dir string, o Options, sink Sink) (err error) {
	l, err := openJet(dir, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	info, err := l.stream.Info(context.Background())
	if err != nil {
		return err
	}
	consumer, err := l.stream.OrderedConsumer(context.Background(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(4096))
	if err != nil {
		return err
	}
	defer messages.Stop()
	for range info.State.Msgs {
		m, err := messages.Next()
		if err != nil {
			return err
		}
		if err := sink(m.Data()); err != nil {
			return err
		}
	}
	return nil
}
