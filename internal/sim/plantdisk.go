package sim

import (
	"github.com/strandline/strandline/localtier/wal"
)

// diskPlants are writers that do not wait for their disks.
func diskPlants() []Plant {
	disk := func(name string, wrap func(fs wal.FS) wal.FS) Plant {
		return Plant{Name: name, Rules: []string{"I1", "I8", "03 §3", "start", "end"}, plant: func(cfg *Config) {
			cfg.Hooks.Disk = func(name string, fs wal.FS) wal.FS {
				if name == "end" {
					return fs
				}
				return wrap(fs)
			}
		}}
	}
	file := func(f wal.File, err error, wrap func(wal.File) wal.File) (wal.File, error) {
		if err != nil {
			return nil, err
		}
		return wrap(f), nil
	}
	return []Plant{
		disk("acks before fsync", func(fs wal.FS) wal.FS {
			return filesOf{fs, func(f wal.File, err error) (wal.File, error) {
				return file(f, err, func(f wal.File) wal.File { return syncsNothing{f} })
			}}
		}),
		disk("a failed fsync taken for a good one", func(fs wal.FS) wal.FS {
			return filesOf{fs, func(f wal.File, err error) (wal.File, error) {
				return file(f, err, func(f wal.File) wal.File { return syncsBlindly{f} })
			}}
		}),
		disk("directory not synced", func(fs wal.FS) wal.FS { return syncsNoDir{fs} }),
	}
}

// filesOf wraps every file that is opened.
type filesOf struct {
	wal.FS
	wrap func(wal.File, error) (wal.File, error)
}

// Open implements wal.FS.
func (d filesOf) Open(name string) (wal.File, error) { return d.wrap(d.FS.Open(name)) }

// OpenWrite implements wal.FS.
func (d filesOf) OpenWrite(name string) (wal.File, error) { return d.wrap(d.FS.OpenWrite(name)) }

// Create implements wal.FS.
func (d filesOf) Create(name string) (wal.File, error) { return d.wrap(d.FS.Create(name)) }

type syncsNothing struct{ wal.File }

func (f syncsNothing) Sync() error { return nil }

type syncsBlindly struct{ wal.File }

func (f syncsBlindly) Sync() error {
	_ = f.File.Sync() // the planted bug
	return nil
}

type syncsNoDir struct{ wal.FS }

func (d syncsNoDir) SyncDir(string) error { return nil }
