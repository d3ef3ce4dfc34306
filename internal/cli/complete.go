package cli

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/server"
	"modelgate/internal/store"
	"modelgate/internal/store/access"
)

const (
	// completeWithin is how long a shell waits for ids and names. What takes longer
	// is not completed.
	completeWithin = 300 * time.Millisecond
	// completeMost bounds how many ids are offered.
	completeMost = 500
)

// found are words to complete with, of a database.
type found func(context.Context, *cobra.Command, *store.DB) ([]cobra.Completion, error)

// complete offers what is found in the database of the configuration. Where there
// is none, and where it does not answer in time, it offers nothing.
func (a *app) complete(find found) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(a.Context, completeWithin)
		defer cancel()
		words := make(chan []cobra.Completion, 1)
		go func() { words <- a.find(ctx, cmd, find) }()
		select {
		case list := <-words:
			return list, cobra.ShellCompDirectiveNoFileComp
		case <-ctx.Done():
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// find is what is found, nothing where something fails: an error would be written
// into the line that somebody types.
func (a *app) find(ctx context.Context, cmd *cobra.Command, find found) []cobra.Completion {
	flag, err := cmd.Flags().GetString("config")
	if err != nil {
		return nil
	}
	file, err := a.configFile(flag)
	if err != nil {
		return nil
	}
	cfg, err := server.LoadConfig(file, a.Lookup, io.Discard)
	if err != nil {
		return nil
	}
	db, err := server.OpenStore(ctx, cfg, store.Options{Mode: store.ReadOnly, Software: buildVersion()})
	if err != nil {
		return nil
	}
	defer db.Close()
	list, err := find(ctx, cmd, db)
	if err != nil {
		return nil
	}
	return list[:min(len(list), completeMost)]
}

// clientWords are the names of organizations, and the ids of those whose name
// another has too.
func clientWords(ctx context.Context, _ *cobra.Command, db *store.DB) ([]cobra.Completion, error) {
	clients, err := db.Clients(ctx)
	if err != nil {
		return nil, err
	}
	named := map[string]int{}
	for _, c := range clients {
		named[c.Name]++
	}
	var words []cobra.Completion
	for _, c := range clients {
		if named[c.Name] == 1 {
			words = append(words, cobra.CompletionWithDesc(c.Name, string(c.ID)))
		} else {
			words = append(words, cobra.CompletionWithDesc(string(c.ID), c.Name))
		}
	}
	return words, nil
}

// clientsOf are the organizations that a command line is about: the one that it
// names with --client, or all.
func clientsOf(ctx context.Context, cmd *cobra.Command, db *store.DB) ([]modelgate.Client, error) {
	if name, err := cmd.Flags().GetString("client"); err == nil && name != "" {
		client, err := resolveClient(ctx, db, name)
		return []modelgate.Client{client}, err
	}
	return db.Clients(ctx)
}

// keyWords are the ids of keys that are not revoked.
func keyWords(ctx context.Context, cmd *cobra.Command, db *store.DB) ([]cobra.Completion, error) {
	clients, err := clientsOf(ctx, cmd, db)
	var words []cobra.Completion
	for _, c := range clients {
		keys, _, err := db.Keys(ctx, c.ID, access.KeyList{Limit: completeMost})
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			if k.Status == modelgate.KeyActive {
				words = append(words, cobra.CompletionWithDesc(string(k.ID), k.Prefix+" "+strings.TrimSpace(k.Name+" "+c.Name)))
			}
		}
	}
	return words, err
}

// subAccountWords are the ids of sub-accounts.
func subAccountWords(ctx context.Context, cmd *cobra.Command, db *store.DB) ([]cobra.Completion, error) {
	clients, err := clientsOf(ctx, cmd, db)
	var words []cobra.Completion
	for _, c := range clients {
		accounts, err := db.SubAccounts(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		for _, s := range accounts {
			words = append(words, cobra.CompletionWithDesc(string(s.ID), s.Slug+" of "+c.Name))
		}
	}
	return words, err
}

// budgetWords are the ids that --scope asks for.
func budgetWords(ctx context.Context, cmd *cobra.Command, db *store.DB) ([]cobra.Completion, error) {
	switch cmd.Flag("scope").Value.String() {
	case string(modelgate.LevelKey):
		return keyWords(ctx, cmd, db)
	case string(modelgate.LevelSubAccount):
		return subAccountWords(ctx, cmd, db)
	}
	return nil, nil
}

// completeProviders offers the names of the configured providers.
func (a *app) completeProviders(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	flag, _ := cmd.Flags().GetString("config") // "" where there is none
	file, err := a.configFile(flag)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cfg, err := config.Load(file, a.Lookup)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []cobra.Completion
	for i := range cfg.Providers {
		words = append(words, cfg.Providers[i].Name)
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeFlag has a flag completed from the database.
func (a *app) completeFlag(cmd *cobra.Command, name string, find found) {
	complete := a.complete(find)
	_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return complete(cmd, nil, typed)
	}) // the flag is there
}
