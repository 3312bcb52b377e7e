// Fails closed until the helper is built.
int main(void) { return 125; }
