package store

import (
	"fmt"
	"testing"
)

func TestPageSize(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), Options{URL: "sqlite:new.db", DataDir: t.TempDir(), Mode: Exclusive})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for name, want := range map[string]string{"page_size": fmt.Sprint(sqlitePage), "journal_mode": "wal"} {
		var got string
		if err := db.write.QueryRow("PRAGMA " + name).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %s, %v", name, got, err)
		}
	}
}
